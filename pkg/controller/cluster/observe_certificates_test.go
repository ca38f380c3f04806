// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	certplanner "github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
)

// issuerUntil returns the certificate of the issuer with another end, as before or after its renewal with the same key.
func (w *certWorld) issuerUntil(end time.Time) *x509.Certificate {
	w.Helper()
	key, err := w.issuer.KeyPEM()
	if err != nil {
		w.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificates.PEM(w.issuer.Certificate), key)
	if err != nil {
		w.Fatal(err)
	}
	template := *w.issuer.Certificate
	template.NotAfter = end
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, w.issuer.Certificate.PublicKey, pair.PrivateKey)
	if err != nil {
		w.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		w.Fatal(err)
	}
	return c
}

// trust has a Secret hold these CAs.
func (w *certWorld) trust(name string, cas ...*x509.Certificate) {
	w.Helper()
	secrets := w.kube.CoreV1().Secrets("n")
	secret, err := secrets.Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	secret = secret.DeepCopy() // the fake returns what it holds
	secret.Data[corev1.ServiceAccountRootCAKey] = certificates.PEM(cas...)
	if _, err := secrets.Update(w.Context(), secret, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
	w.r.secrets.invalidate(types.NamespacedName{Namespace: "n", Name: "c"})
}

// TestCertificatesEndWithTheirCA: an issuer signs certificates that outlive its CA. They end with the CA that
// verifies them, until the renewed CA does. That end stays after the CA has ended.
func TestCertificatesEndWithTheirCA(t *testing.T) {
	w := newCertWorld(t, requested)
	w.install()
	w.step()
	const life, before = 100 * time.Hour, 10 * time.Hour
	leafEnd, caEnd := w.clock.Now().Add(life), w.clock.Now().Add(before)
	first, renewed := w.issuerUntil(caEnd), w.issuerUntil(leafEnd.Add(time.Hour))
	for _, name := range requestedSecrets {
		w.sign(name, life)
		w.trust(name, first)
	}
	check := func(when string, state certplanner.State, withCA map[v1beta2.CertificateUse]bool) {
		t.Helper()
		s := w.step()
		for _, c := range s.Certificates {
			want, wantState := leafEnd, certplanner.Usable
			if withCA[c.Use] {
				want, wantState = caEnd, state
			}
			if !c.NotAfter.Equal(want) || c.EndsWithCA != withCA[c.Use] || c.State != wantState {
				t.Errorf("%s: the %s certificate ends at %v, with a CA %t, in state %d (%s); want %v, state %d", when, c.Use, c.NotAfter, c.EndsWithCA, c.State, c.Message, want, wantState)
			}
		}
	}
	all := map[v1beta2.CertificateUse]bool{
		v1beta2.CertificateUsePeer: true, v1beta2.CertificateUseServer: true, v1beta2.CertificateUseOperator: true, v1beta2.CertificateUseClient: true,
	}
	check("before the renewal", certplanner.Usable, all)

	// Members trust the renewed CA from clients. The controller trusts the former one only.
	w.trust("c-server-tls", first, renewed)
	rest := map[v1beta2.CertificateUse]bool{v1beta2.CertificateUsePeer: true, v1beta2.CertificateUseServer: true}
	check("the members trust the renewed CA", certplanner.Usable, rest)
	w.clock.SetTime(caEnd.Add(time.Minute))
	check("the former CA has ended", certplanner.Expired, rest)
	w.trust("c-peer-tls", renewed)
	w.trust("c-operator-tls", renewed)
	check("all trust the renewed CA", certplanner.Usable, nil)
}
