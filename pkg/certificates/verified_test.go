// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates_test

import (
	"crypto/x509"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestSuccessIsRememberedForItsQuestionOnly: a pair was accepted, and the same pair is judged
// afresh by other CAs, for another purpose, and when a certificate of its chain has ended.
func TestSuccessIsRememberedForItsQuestionOnly(t *testing.T) {
	t.Parallel()
	trusted, other := ca(t, now), ca(t, now)
	// The CA ends before the certificate that it signed.
	late := now.Add(certificates.CALife - time.Hour)
	template := certificates.Template{Name: "server", Hosts: serverTemplate.Hosts, Server: true}
	pair, err := certificates.Read(resources.UseServer, secret(t, trusted, resources.UseServer, resources.FormatNamed, template, late))
	if err != nil {
		t.Fatal(err)
	}
	check := func(at time.Time, by *certificates.CA, purpose x509.ExtKeyUsage) error {
		return pair.Check(at, []*x509.Certificate{by.Certificate}, nil, purpose)
	}
	for range 2 {
		if err := check(late, trusted, x509.ExtKeyUsageServerAuth); err != nil {
			t.Fatal(err)
		}
		if err := check(late, other, x509.ExtKeyUsageServerAuth); !errors.Is(err, certificates.ErrUntrusted) {
			t.Errorf("by another CA: %v", err)
		}
		if err := check(late, trusted, x509.ExtKeyUsageClientAuth); !errors.Is(err, certificates.ErrUntrusted) {
			t.Errorf("for another purpose: %v", err)
		}
		if err := check(trusted.Certificate.NotAfter.Add(time.Second), trusted, x509.ExtKeyUsageServerAuth); err == nil {
			t.Error("it is accepted after its CA has ended")
		}
		if !trusted.HasSigned(pair.Leaf) || other.HasSigned(pair.Leaf) {
			t.Error("the wrong CA has signed it")
		}
	}
}

// BenchmarkCheck measures what each look at a cluster with TLS does for each certificate.
func BenchmarkCheck(b *testing.B) {
	a, err := certificates.NewCA("c-ca", now)
	if err != nil {
		b.Fatal(err)
	}
	chain, key, err := a.Issue(serverTemplate, now)
	if err != nil {
		b.Fatal(err)
	}
	f := resources.Files(resources.UseServer, resources.FormatNamed)
	pair, err := certificates.Read(resources.UseServer, &corev1.Secret{Data: map[string][]byte{f.Cert: chain, f.Key: key, f.CA: certificates.PEM(a.Certificate)}})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := pair.Check(now, pair.CAs, []string{host}, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth); err != nil {
			b.Fatal(err)
		}
	}
}
