// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/x509"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	k8stesting "k8s.io/client-go/testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	certplanner "github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/pkg/untrusted"
)

var certKey = types.NamespacedName{Namespace: "n", Name: "c"}

// startPods gives the world two pods that were started with the present CAs.
func (w *certWorld) startPods() {
	w.Helper()
	s := w.step()
	w.pods = nil
	for _, name := range []string{"c-a", "c-b"} {
		w.pods = append(w.pods, planner.Pod{Name: name, Owned: true, Running: true, Trust: s.Trust, PeerCAs: certificates.Names(s.signer.trusted)})
	}
}

// rotate replaces the CA, and all members restart.
func (w *certWorld) rotate(n int) {
	w.Helper()
	w.cluster.Annotations = map[string]string{resources.AnnotationRotateCA: strconv.Itoa(n)}
	w.update()
	for range 3 {
		w.step()
	}
	if err := dropCA(w.Context(), &run{Reconciler: w.r, key: certKey, seen: w.step()}, planner.DropOldCAs{}); err != nil {
		w.Fatal(err)
	}
	for range 3 {
		w.step()
	}
	w.startPods()
}

// put writes the content of an earlier Secret, as kubectl apply does with an old dump.
func (w *certWorld) put(old *corev1.Secret) {
	w.Helper()
	live := w.secret(old.Name)
	live.Data, live.Annotations = old.Data, old.Annotations
	if _, err := w.kube.CoreV1().Secrets("n").Update(w.Context(), live, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
	w.r.secrets.invalidate(certKey)
}

// requireAccepted makes sure that every member accepts each certificate, and that what a member that starts
// now would read verifies the certificates of the others.
func (w *certWorld) requireAccepted(known []*x509.Certificate) {
	w.Helper()
	peer := w.secret("c-peer-tls")
	bundle, err := certificates.ReadAll(peer.Data[corev1.ServiceAccountRootCAKey])
	if err != nil {
		w.Fatal(err)
	}
	for _, n := range neededBy(w.cluster) {
		pair, err := certificates.Read(n.format, w.secret(n.secret))
		if err != nil {
			w.Fatal(err)
		}
		for _, p := range w.pods {
			if err := pair.CheckNamed(w.clock.Now(), known, p.PeerCAs, x509.ExtKeyUsageClientAuth); err != nil {
				w.Fatalf("pod %s rejects the certificate for %s: %v", p.Name, n.use, err)
			}
		}
		if err := pair.Check(w.clock.Now(), bundle, nil, x509.ExtKeyUsageClientAuth); err != nil {
			w.Fatalf("a member that starts now rejects the certificate for %s: %v", n.use, err)
		}
	}
}

// TestOlderCAIsPutBack: an older Secret of the CA comes back after rotations. The present CA stays trusted until all
// members trust the older one. That signs nothing before, although a CA that is trusted no more has cross-signed it.
func TestOlderCAIsPutBack(t *testing.T) {
	for name, rotations := range map[string]int{"the first CA": 0, "a CA that was cross-signed": 1} {
		t.Run(name, func(t *testing.T) {
			w, _ := issuedWorld(t)
			w.startPods()
			var known []*x509.Certificate
			var old *corev1.Secret
			for n := range rotations + 1 {
				if n > 0 {
					w.rotate(n)
				}
				old = w.secret("c-ca-tls")
				known = append(known, w.step().signer.ca.Certificate)
			}
			older := known[rotations]
			w.rotate(rotations + 1)
			present := w.step().signer.ca.Certificate
			known = append(known, present)

			w.put(old)
			for range 5 {
				w.step()
				w.requireAccepted(known)
			}
			s := w.step()
			if !s.signer.ca.Certificate.Equal(older) || len(s.signer.trusted) != 2 {
				t.Fatalf("%d CAs are trusted, and CA %s signs", len(s.signer.trusted), s.signer.ca.Certificate.Subject.CommonName)
			}
			if !s.certificates[v1beta2.CertificateUsePeer].IsSignedBy(present) {
				t.Error("the older CA signs before members trust it")
			}
			w.pods[0].Trust, w.pods[0].PeerCAs = s.Trust, certificates.Names(s.signer.trusted)
			w.step()
			w.requireAccepted(known)
			w.pods[1] = w.pods[0]
			for range 3 {
				w.step()
				w.requireAccepted(known)
			}
			if s := w.step(); !s.certificates[v1beta2.CertificateUsePeer].IsSignedBy(older) || len(s.certificates[v1beta2.CertificateUsePeer].CAs) != 2 {
				t.Error("all members trust the older CA, and it does not sign")
			}
		})
	}
}

// TestCAThatAllTrustIsPutBack: members trust both CAs, and show certificates of the later one. The later one stays
// trusted, because members show its certificates until their kubelets look.
func TestCAThatAllTrustIsPutBack(t *testing.T) {
	w, first := issuedWorld(t)
	w.startPods()
	old := w.secret("c-ca-tls")
	w.cluster.Annotations = map[string]string{resources.AnnotationRotateCA: "1"}
	w.update()
	for range 3 {
		w.step()
	}
	w.startPods()
	w.put(old)
	w.step()
	s := w.step()
	if !s.signer.ca.Certificate.Equal(first.signer.ca.Certificate) || len(s.signer.trusted) != 2 || s.CA.Since.IsZero() {
		t.Errorf("%d CAs are trusted since %v", len(s.signer.trusted), s.CA.Since)
	}
}

// TestRestartWhileCAWasDropped: the container of a pod has restarted in place while the first CA was dropped, so its member
// trusts the later CA only, and the pod says that it trusts both. The first CA, put back, signs when that pod was made
// again.
func TestRestartWhileCAWasDropped(t *testing.T) {
	w, first := issuedWorld(t)
	w.startPods()
	old := w.secret("c-ca-tls")
	w.clock.SetTime(w.clock.Now().Add(time.Hour))
	w.cluster.Annotations = map[string]string{resources.AnnotationRotateCA: "1"}
	w.update()
	w.steps(3)
	w.startPods()
	both := w.pods[0]
	both.RestartCount = 1
	if err := dropCA(t.Context(), &run{Reconciler: w.r, key: certKey, seen: w.step()}, planner.DropOldCAs{}); err != nil {
		t.Fatal(err)
	}
	w.steps(3)
	w.startPods()
	w.pods[0] = both
	w.put(old)
	w.steps(3)
	w.startPods()
	w.pods[0], w.pods[1].Made = both, w.clock.Now()
	w.steps(3)
	s := w.step()
	if s.certificates[v1beta2.CertificateUsePeer].IsSignedBy(first.signer.ca.Certificate) {
		t.Error("the CA that was put back signs before every member trusts it")
	}
	if s.Pods[0].Trust == s.Trust || s.Pods[1].Trust != s.Trust {
		t.Errorf("%+v counts as started with the present CAs, and %+v does not", s.Pods[0], s.Pods[1])
	}
	w.startPods()
	w.steps(3)
	if s := w.step(); !s.certificates[v1beta2.CertificateUsePeer].IsSignedBy(first.signer.ca.Certificate) {
		t.Error("the CA that all members trust does not sign")
	}
}

// TestUnknownCAIsNotTrusted: a certificate and a CA that a user puts into a Secret of members are replaced. No member
// trusts that CA.
func TestUnknownCAIsNotTrusted(t *testing.T) {
	w, _ := issuedWorld(t)
	w.startPods()
	other, err := certificates.NewCA("other", w.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	chain, key, err := other.Issue(templateOf(w.cluster, v1beta2.CertificateUsePeer), w.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	peer := w.secret("c-peer-tls")
	peer.Data = map[string][]byte{corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: key, corev1.ServiceAccountRootCAKey: certificates.PEM(other.Certificate)}
	w.put(peer)
	w.step()
	if s := w.step(); len(s.signer.trusted) != 1 || s.certificates[v1beta2.CertificateUsePeer].IsSignedBy(other.Certificate) {
		t.Errorf("%d CAs are trusted", len(s.signer.trusted))
	}
}

// TestBundleBelongsToObservedCertificate: what was observed of the CA, or of the certificate beside a bundle, is no
// longer so. Another bundle could lack the CA that the certificate needs.
func TestBundleBelongsToObservedCertificate(t *testing.T) {
	for name, change := range map[string]func(*certWorld, *seen){
		"another certificate": func(w *certWorld, s *seen) {
			chain, key, err := s.signer.ca.Issue(templateOf(w.cluster, v1beta2.CertificateUsePeer), w.clock.Now())
			if err != nil {
				w.Fatal(err)
			}
			peer := w.secret("c-peer-tls")
			peer.Data[corev1.TLSCertKey], peer.Data[corev1.TLSPrivateKeyKey] = chain, key
			w.put(peer)
		},
		"other trusted CAs": func(w *certWorld, s *seen) {
			other, err := certificates.NewCA("other", w.clock.Now())
			if err != nil {
				w.Fatal(err)
			}
			ca := w.secret("c-ca-tls")
			ca.Data[corev1.ServiceAccountRootCAKey] = certificates.PEM(s.signer.ca.Certificate, other.Certificate)
			w.put(ca)
		},
		"": func(*certWorld, *seen) {},
	} {
		w, _ := issuedWorld(t)
		s := w.step()
		change(w, s)
		err := issueCertificate(t.Context(), &run{Reconciler: w.r, key: certKey, seen: s}, planner.IssueCertificate{Use: v1beta2.CertificateUsePeer, Change: certplanner.ChangeBundle})
		if errors.Is(err, reconcile.ErrStale) != (name != "") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestCopyIsOfAnotherCertificate: members still accept the damaged certificate of the controller. The Secret gets a
// copy of another certificate, not of its own content, and that is written once.
func TestCopyIsOfAnotherCertificate(t *testing.T) {
	w, _ := issuedWorld(t)
	w.startPods()
	s := w.step()
	if !s.identity.Leaf.Equal(s.certificates[v1beta2.CertificateUseOperator].Leaf) {
		t.Fatal("the controller does not show its own certificate")
	}
	if err := issueCertificate(t.Context(), &run{Reconciler: w.r, key: certKey, seen: s}, planner.IssueCertificate{Use: v1beta2.CertificateUseOperator, Change: certplanner.ChangeStandIn}); err != nil {
		t.Fatal(err)
	}
	before := len(w.kube.Actions())
	err := issueCertificate(t.Context(), &run{Reconciler: w.r, key: certKey, seen: s}, planner.IssueCertificate{Use: v1beta2.CertificateUseOperator, Change: certplanner.ChangeStandIn})
	if err != nil || slices.ContainsFunc(w.kube.Actions()[before:], func(a k8stesting.Action) bool { return a.GetVerb() != "get" }) {
		t.Errorf("the second time: %v, %v", err, w.kube.Actions()[before:])
	}
	if got := w.step().certificates[v1beta2.CertificateUseOperator].Leaf; !got.Equal(s.certificates[v1beta2.CertificateUseClient].Leaf) {
		t.Errorf("the Secret of the controller holds a certificate of %q", got.Subject.CommonName)
	}
}

// TestPodBetweenTwoBundles: a person has restored one Secret of the members, which lists only the CA before. A pod
// that is created now verifies other members by that Secret, so it is none that trusts both CAs.
func TestPodBetweenTwoBundles(t *testing.T) {
	w, _ := issuedWorld(t)
	w.startPods()
	old := w.secret("c-peer-tls")
	w.cluster.Annotations = map[string]string{resources.AnnotationRotateCA: "1"}
	w.update()
	for range 3 {
		w.step()
	}
	before := w.pods[0].Trust
	w.startPods()
	both := w.pods[0].Trust
	w.put(old)
	if s := w.step(); s.Trust != before || s.Trust == both {
		t.Errorf("a pod counts as one that trusts %s, want %s, not %s", s.Trust, before, both)
	}
}

// TestCAIsPutBackEachTime: a program writes the Secret of the first CA again after each rotation, with the annotations of
// that time. The controller ends the fight, and says so. Another request begins another count.
func TestCAIsPutBackEachTime(t *testing.T) {
	w, first := issuedWorld(t)
	w.r.Gate, w.hasRecord = stopped(), true
	if _, err := w.kube.CoreV1().ConfigMaps("n").Create(t.Context(), resources.RecordConfigMap(w.cluster, resources.Record{}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.startPods()
	old := w.secret("c-ca-tls")
	for request, want := range []int{5, 5} {
		w.cluster.Annotations = map[string]string{resources.AnnotationRotateCA: strconv.Itoa(request)}
		w.update()
		issued := map[string]bool{}
		for range 3 * (want + 2) {
			if s := w.step(); !s.signer.ca.Certificate.Equal(first.signer.ca.Certificate) {
				issued[s.signer.ca.Certificate.Subject.CommonName] = true
				w.put(old)
			}
		}
		if len(issued) != want {
			t.Errorf("request %d: %d other CAs were issued, want %d", request, len(issued), want)
		}
		s := w.step()
		status := planner.Status(s.Observed, planner.Decide(s.Observed))
		if !slices.ContainsFunc(status.Conditions, func(c v1beta2.ClusterCondition) bool { return c.Reason == certplanner.ReasonCAPutBack }) {
			t.Errorf("request %d: the conditions are %+v", request, status.Conditions)
		}
	}
}

// TestWriterOf: the manager that has written an entry last is named, not one that has written another entry since.
func TestWriterOf(t *testing.T) {
	at := func(manager, fields string, hour int) metav1.ManagedFieldsEntry {
		when := metav1.Date(2026, 1, 2, hour, 0, 0, 0, time.UTC)
		return metav1.ManagedFieldsEntry{Manager: manager, Time: &when, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const certificate, bundle = `{"f:data":{".":{},"f:tls.crt":{}}}`, `{"f:data":{"f:ca.crt":{}}}`
	for _, test := range []struct {
		name   string
		fields []metav1.ManagedFieldsEntry
		want   string
	}{
		{"unknown", nil, ""},
		{"another entry was written since", []metav1.ManagedFieldsEntry{at("argocd", certificate, 1), at("controller", bundle, 2)}, "argocd"},
		{"the last of two", []metav1.ManagedFieldsEntry{at("flux", certificate, 3), at("argocd", certificate, 1)}, "flux"},
		{"a name that is no plain text", []metav1.ManagedFieldsEntry{at("a\x1bb", certificate, 1)}, untrusted.Text("a\x1bb")},
	} {
		if got := writerOf(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{ManagedFields: test.fields}}, corev1.TLSCertKey); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
