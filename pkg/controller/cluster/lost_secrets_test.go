// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/x509"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	certplanner "github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// issuedWorld is a world in which all certificates are issued, with the last observation.
func issuedWorld(t *testing.T) (*certWorld, *seen) {
	t.Helper()
	w := newCertWorld(t, v1beta2.TLSPolicy{Auto: &v1beta2.AutoTLS{}})
	for range 3 {
		w.step()
	}
	return w, w.step()
}

func (w *certWorld) lose(names ...string) {
	w.Helper()
	for _, name := range names {
		if err := w.kube.CoreV1().Secrets("n").Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil {
			w.Fatal(err)
		}
	}
}

// TestDeletedSecretIsNoticed: each Secret is read again within five looks at a cluster at rest, one
// with each look.
func TestDeletedSecretIsNoticed(t *testing.T) {
	for _, name := range []string{"c-ca-tls", "c-peer-tls", "c-server-tls", "c-operator-tls", "c-client-tls"} {
		w, _ := issuedWorld(t)
		w.lose(name)
		noticed := false
		for range 5 {
			w.clock.SetTime(w.clock.Now().Add(secretLook))
			w.kube.ClearActions()
			s, _ := w.try()
			noticed = noticed || states(s)[certplanner.Missing] == 1
			if n := len(w.kube.Actions()); !noticed && n > 1 {
				t.Errorf("%s: a look at rest made %d requests", name, n)
			}
		}
		if !noticed {
			t.Errorf("%s is missing, and no look has noticed it", name)
		}
	}
}

// TestLostCAIsWrittenBack: the controller has the CA in memory, so all Secrets come back with certificates
// that every member accepts. A controller that was started since issues another CA, and one of another
// cluster of the same name is not used.
func TestLostCAIsWrittenBack(t *testing.T) {
	for name, test := range map[string]struct {
		after func(*certWorld)
		same  bool
	}{
		"in memory":       {func(*certWorld) {}, true},
		"another process": {func(w *certWorld) { w.r.secrets.forget(types.NamespacedName{Namespace: "n", Name: "c"}) }, false},
		"another cluster": {func(w *certWorld) {
			key := types.NamespacedName{Namespace: "n", Name: "c"}
			kept := w.r.secrets.kept[key].DeepCopy()
			kept.OwnerReferences, kept.Annotations[resources.AnnotationClusterUID] = nil, "other"
			w.r.secrets.keep(key, kept)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, first := issuedWorld(t)
			w.lose("c-ca-tls", "c-peer-tls", "c-server-tls", "c-operator-tls", "c-client-tls")
			test.after(w)
			w.r.secrets.invalidate(types.NamespacedName{Namespace: "n", Name: "c"})
			for range 3 {
				w.step()
			}
			s := w.step()
			if states(s)[certplanner.Usable] != 5 {
				t.Fatalf("not everything is back: %+v", s.Certificates)
			}
			if same := s.Certificates[0].Serial == first.Certificates[0].Serial; same != test.same || (s.Trust == first.Trust) != test.same {
				t.Errorf("the CA is the same: %t", same)
			}
		})
	}
}

// TestCAOfAClockThatWasAhead: another CA takes the place of one that is valid only later, before a member was
// started. The memory of the controller brings no such CA back.
func TestCAOfAClockThatWasAhead(t *testing.T) {
	for name, test := range map[string]struct {
		before func(*certWorld)
		again  bool
	}{
		"no member was started":   {func(*certWorld) {}, true},
		"a bootstrap member runs": {(*certWorld).startPods, false},
		"a pod that was not observed": {func(w *certWorld) {
			pod := resources.Pod(w.cluster, resources.MemberPod{Name: "c-a", Bootstrap: true})
			if _, err := w.kube.CoreV1().Pods("n").Create(w.Context(), pod, metav1.CreateOptions{}); err != nil {
				w.Fatal(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, ahead := issuedWorld(t)
			test.before(w)
			w.clock.SetTime(w.clock.Now().Add(-100 * time.Hour))
			w.r.secrets.invalidate(certKey)
			var s *seen
			for range 5 {
				s, _ = w.try() // a pod that was not observed is an error
			}
			usable := 0
			if test.again {
				usable = len(s.Certificates)
			}
			if got := states(s)[certplanner.Usable]; got != usable {
				t.Fatalf("%d certificates can be used, want %d: %+v", got, usable, s.Certificates)
			}
			if again := !s.signer.ca.Certificate.Equal(ahead.signer.ca.Certificate); again != test.again || len(s.signer.trusted) != 1 {
				t.Errorf("another CA signs: %t; %d CAs are trusted", again, len(s.signer.trusted))
			}
			if s.CA.Kept != test.again {
				t.Errorf("a CA is kept in memory: %t", s.CA.Kept)
			}
		})
	}
}

// TestWrittenBackCATrustsLaterOnes: the memory may be older than the CA that was lost.
func TestWrittenBackCATrustsLaterOnes(t *testing.T) {
	w, _ := issuedWorld(t)
	later, err := certificates.NewCA("later", w.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	peer, err := w.kube.CoreV1().Secrets("n").Get(t.Context(), "c-peer-tls", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	peer.Data[corev1.ServiceAccountRootCAKey] = append(peer.Data[corev1.ServiceAccountRootCAKey], certificates.PEM(later.Certificate)...)
	if _, err := w.kube.CoreV1().Secrets("n").Update(t.Context(), peer, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.lose("c-ca-tls")
	w.r.secrets.invalidate(types.NamespacedName{Namespace: "n", Name: "c"})
	w.step()
	w.step()
	if s := w.step(); len(s.signer.trusted) != 2 {
		t.Errorf("%d CAs are trusted, not the present one and the one that members were given", len(s.signer.trusted))
	}
}

// TestAcceptedIdentity: the controller shows its own certificate, or another certificate if members do
// not accept its own.
func TestAcceptedIdentity(t *testing.T) {
	w, s := issuedWorld(t)
	old := s.signer
	next, err := certificates.NewCA("next", w.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	chain, key, err := next.Issue(certificates.Template{Name: v1beta2.OperatorCommonName, Client: true}, w.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	both := []*x509.Certificate{next.Certificate, old.ca.Certificate}
	early, err := certificates.Read(resources.UseOperator, &corev1.Secret{Data: map[string][]byte{
		corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: key, corev1.ServiceAccountRootCAKey: certificates.PEM(both...),
	}})
	if err != nil {
		t.Fatal(err)
	}
	pods := func(cas ...string) []planner.Pod {
		var list []planner.Pod
		for _, names := range cas {
			list = append(list, planner.Pod{Owned: true, PeerCAs: names})
		}
		return list
	}
	before, since := certificates.Names(both[1:]), certificates.Names(both)
	for _, test := range []struct {
		name     string
		operator *certificates.Pair
		pods     []planner.Pod
		want     string
		can      bool
	}{
		{"its own", s.certificates[v1beta2.CertificateUseOperator], pods(before, before), v1beta2.OperatorCommonName, true},
		{"its own while members restart", s.certificates[v1beta2.CertificateUseOperator], pods(before, since), v1beta2.OperatorCommonName, true},
		{"its own is lost", nil, pods(before, before), "etcd-client", true},
		{"its own was issued too early", early, pods(before, before, since), "etcd-client", true},
		{"its own was issued when all trust the next CA", early, pods(since, since), v1beta2.OperatorCommonName, true},
		{"members accept none", nil, pods("other"), "", false},
		{"members accept none, not its own either", early, pods("other"), v1beta2.OperatorCommonName, false},
		{"pods of an earlier release", early, pods("", ""), v1beta2.OperatorCommonName, true},
		{"no member runs", nil, nil, "etcd-client", true},
	} {
		o := &seen{signer: &signer{ca: next, trusted: both}, certificates: map[v1beta2.CertificateUse]*certificates.Pair{}, Observed: planner.Observed{Now: s.Now, Cluster: w.cluster, Pods: test.pods}}
		for _, use := range []v1beta2.CertificateUse{v1beta2.CertificateUseClient, v1beta2.CertificateUseServer, v1beta2.CertificateUsePeer} {
			o.certificates[use] = s.certificates[use]
		}
		if test.operator != nil {
			o.certificates[v1beta2.CertificateUseOperator] = test.operator
		}
		o.observeAcceptance()
		got := ""
		if o.identity != nil {
			got = o.identity.Leaf.Subject.CommonName
		}
		if got != test.want || o.CanAuthenticate != test.can {
			t.Errorf("%s: %q, %t; want %q, %t", test.name, got, o.CanAuthenticate, test.want, test.can)
		}
	}
}

// TestCopyInPlaceOfLostCertificate: the CA and the certificate of the controller were lost, and nothing has them in
// memory. The pod of a recovery mounts the Secret of the controller. It holds what members accept until they trust
// the next CA.
func TestCopyInPlaceOfLostCertificate(t *testing.T) {
	w, first := issuedWorld(t)
	w.pods = []planner.Pod{{Name: "c-a", Owned: true, Running: true, Trust: first.Trust, PeerCAs: certificates.Names(first.signer.trusted)}}
	w.lose("c-ca-tls", "c-operator-tls")
	w.r.secrets.forget(types.NamespacedName{Namespace: "n", Name: "c"})
	for range 4 {
		w.step()
	}
	s := w.step()
	if states(s)[certplanner.Usable] != 5 || !s.CanAuthenticate {
		t.Fatalf("not everything is back: %+v", s.Certificates)
	}
	operator := s.certificates[v1beta2.CertificateUseOperator]
	if !operator.Leaf.Equal(first.certificates[v1beta2.CertificateUseClient].Leaf) {
		t.Errorf("the Secret of the controller holds a certificate of %q", operator.Leaf.Issuer.CommonName)
	}
	if err := first.certificates[v1beta2.CertificateUseServer].Check(w.clock.Now(), operator.CAs, nil, x509.ExtKeyUsageServerAuth); err != nil {
		t.Errorf("a pod that mounts the Secret does not accept the member: %v", err)
	}
	if !isSameSerials(s, w.step()) {
		t.Error("the copy is written again")
	}
	w.pods[0].Trust, w.pods[0].PeerCAs = s.Trust, certificates.Names(s.signer.trusted)
	w.step()
	if name := w.step().certificates[v1beta2.CertificateUseOperator].Leaf.Subject.CommonName; name != v1beta2.OperatorCommonName {
		t.Errorf("after the restart of the member the Secret of the controller still has the certificate of %q", name)
	}
}

// TestLostAfterOldCAWasDropped: the member has not restarted since the old CA was dropped, so it trusts only a
// CA that no bundle holds. It accepts what remains of the CA that was lost. So the controller shows and copies that,
// and the members need not restart together.
func TestLostAfterOldCAWasDropped(t *testing.T) {
	key := types.NamespacedName{Namespace: "n", Name: "c"}
	w, first := issuedWorld(t)
	w.pods = []planner.Pod{{Name: "c-a", Owned: true, Running: true, Trust: first.Trust, PeerCAs: certificates.Names(first.signer.trusted)}}
	w.cluster.Annotations = map[string]string{resources.AnnotationRotateCA: "1"}
	w.update()
	for range 3 {
		w.step()
	}
	if err := dropCA(t.Context(), &run{Reconciler: w.r, key: key, seen: w.step()}, planner.DropOldCAs{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.step()
	}
	left := w.step()
	w.lose("c-ca-tls", "c-operator-tls")
	w.r.secrets.forget(key)
	for range 4 {
		w.step()
	}
	s := w.step()
	if states(s)[certplanner.Usable] != 5 || !s.CanAuthenticate || !s.Pods[0].Accepts || s.Pods[0].TrustsCA {
		t.Fatalf("CanAuthenticate is %t, the pod is seen as %+v, and the certificates as %+v", s.CanAuthenticate, s.Pods[0], s.Certificates)
	}
	if operator := s.certificates[v1beta2.CertificateUseOperator]; !operator.Leaf.Equal(left.certificates[v1beta2.CertificateUseClient].Leaf) {
		t.Errorf("the Secret of the controller holds a certificate of %q, which the member rejects", operator.Leaf.Issuer.CommonName)
	}
}

// TestTrustFromSecretsOfClients: a user who may write the Secret of clients cannot add a CA to what members
// trust. One that members trust already is known from there, if nothing else is left.
func TestTrustFromSecretsOfClients(t *testing.T) {
	for name, runs := range map[string]bool{"a member trusts it": true, "no member trusts it": false} {
		w, s := issuedWorld(t)
		w.lose("c-ca-tls", "c-peer-tls", "c-server-tls", "c-operator-tls")
		o := &seen{Observed: planner.Observed{Cluster: w.cluster, Pods: []planner.Pod{{Owned: true, PeerCAs: "other"}}}}
		if runs {
			o.Pods[0].PeerCAs = certificates.Names(s.signer.trusted)
		}
		got, err := withDistributedCAs(t.Context(), &run{Reconciler: w.r, seen: o}, nil)
		if err != nil || (len(got) == 1) != runs {
			t.Errorf("%s: %d CAs, %v", name, len(got), err)
		}
	}
}
