// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	certplanner "github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestRenewal lets two thirds of the life of certificates pass that are issued here. The
// same CA renews them, so no member has to restart: etcd reads its certificate for each
// connection.
func TestRenewal(t *testing.T) {
	w := newCertWorld(t, v1beta2.TLSPolicy{Auto: &v1beta2.AutoTLS{}})
	for range 3 { // issue the CA, issue the certificates, look at them
		w.step()
	}
	first := w.step()
	if states(first)[certplanner.Usable] != 5 {
		t.Fatalf("not everything is issued: %+v", first.Certificates)
	}
	issued := w.clock.Now()

	w.clock.SetTime(issued.Add(certificates.LeafLife/3*2 - 24*time.Hour))
	w.step()
	if s := w.step(); !isSameSerials(first, s) {
		t.Errorf("certificates are renewed %v too early", 24*time.Hour)
	}
	w.clock.SetTime(issued.Add(certificates.LeafLife / 3 * 2))
	w.step()
	s := w.step()
	if states(s)[certplanner.Usable] != 5 {
		t.Fatalf("after the renewal it is %+v", s.Certificates)
	}
	for i := range s.Certificates {
		was, is := &first.Certificates[i], &s.Certificates[i]
		if renewed := was.Serial != is.Serial; renewed != (is.Use != v1beta2.CertificateUseCA) {
			t.Errorf("the %s certificate was renewed: %t", is.Use, renewed)
		}
		if is.Use != v1beta2.CertificateUseCA && (!is.NotAfter.After(was.NotAfter) || !is.Renewal.After(w.clock.Now())) {
			t.Errorf("the %s certificate is valid until %v now and was until %v; it is renewed at %v", is.Use, is.NotAfter, was.NotAfter, is.Renewal)
		}
	}
	if s.Trust != first.Trust || s.Trust == "" {
		t.Errorf("members are to trust %s and were to trust %s: they would restart", s.Trust, first.Trust)
	}
}

// TestDropRequestIsSpent: a request to end the trust in an old CA counts for the CA that it was made for, also if both
// were requested at once. The clients of the next CA get their day: one that takes over by itself, and one of an older
// Secret that was put back.
func TestDropRequestIsSpent(t *testing.T) {
	for name, next := range map[string]func(w *certWorld, old *corev1.Secret, present certplanner.Certificate){
		"a CA that takes over by itself":    func(w *certWorld, _ *corev1.Secret, c certplanner.Certificate) { w.clock.SetTime(c.Renewal) },
		"an older Secret that was put back": func(w *certWorld, old *corev1.Secret, _ certplanner.Certificate) { w.put(old) },
	} {
		w, _ := issuedWorld(t)
		w.startPods()
		old := w.secret("c-ca-tls")
		w.cluster.Annotations = map[string]string{resources.AnnotationRotateCA: "1", resources.AnnotationDropOldCA: "1"}
		w.update()
		w.steps(3)
		s := w.step()
		if !s.CA.Overlap || s.CA.Request != "1" || s.CA.Spent != "" {
			t.Fatalf("after the rotation: %+v", s.CA)
		}
		if err := dropCA(t.Context(), &run{Reconciler: w.r, key: certKey, seen: s}, planner.DropOldCAs{}); err != nil {
			t.Fatal(err)
		}
		w.steps(3)
		w.startPods()
		dropped := w.step()
		if dropped.CA.Overlap || dropped.CA.Spent != "1" {
			t.Fatalf("after the end of the old CA: %+v", dropped.CA)
		}
		next(w, old, dropped.Certificates[0])
		w.steps(3)
		if s := w.step(); !s.CA.Overlap || s.CA.Spent != "1" || s.Certificates[0].Serial == dropped.Certificates[0].Serial {
			t.Errorf("%s: %+v", name, s.CA)
		}
	}
}

// TestLastHoursOfCA: no next CA can take over before the end of the trust in the CA before. Nothing that the
// present CA signs outlives it, so in its last hours the life of a new certificate is mostly over. A certificate
// that ends with the CA is not issued again.
func TestLastHoursOfCA(t *testing.T) {
	w := newCertWorld(t, v1beta2.TLSPolicy{Auto: &v1beta2.AutoTLS{}})
	w.steps(3)
	w.cluster.Annotations = map[string]string{resources.AnnotationRotateCA: "1"}
	w.update()
	w.steps(3)
	ca := w.step().Certificates[0]
	w.clock.SetTime(ca.NotAfter.Add(-6 * time.Hour))
	w.step()
	last := w.step()
	for i := range last.Certificates {
		if c := &last.Certificates[i]; c.State != certplanner.Usable || !c.NotAfter.Equal(ca.NotAfter) || c.Use != v1beta2.CertificateUseCA && !c.Renewal.IsZero() {
			t.Errorf("the %s certificate is in state %d until %v, and is renewed at %v", c.Use, c.State, c.NotAfter, c.Renewal)
		}
	}
	for range 3 {
		w.clock.SetTime(w.clock.Now().Add(time.Hour))
		if s := w.step(); !isSameSerials(last, s) {
			t.Fatalf("at %v certificates that end with the CA are issued again", w.clock.Now())
		}
	}
}

// TestUnseenPodKeepsItsCertificates: the Secret of the CA was deleted, and nothing cross-signs the next CA. A
// cache from before the pods were made shows none that does not trust the next CA. It signs no certificate
// before each pod was started with it.
func TestUnseenPodKeepsItsCertificates(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		waits  bool
	}{
		"the pod runs":                       {func(*corev1.Pod) {}, true},
		"the pod is deleted":                 {func(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = ptr.To(metav1.Now()), []string{"test/stays"} }, false},
		"the pod has ended":                  {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false},
		"the pod belongs to another cluster": {func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCertWorld(t, v1beta2.TLSPolicy{Auto: &v1beta2.AutoTLS{}})
			w.cluster.Status.Phase = v1beta2.ClusterPhaseRunning
			for range 3 {
				w.step()
			}
			first := w.step()
			pod := resources.Pod(w.cluster, resources.MemberPod{Name: "c-a", Trust: first.Trust})
			test.change(pod)
			if err := w.kube.Tracker().Add(pod); err != nil {
				t.Fatal(err)
			}
			if err := w.kube.CoreV1().Secrets("n").Delete(t.Context(), resources.CASecret(w.cluster), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			w.r.secrets.forget(types.NamespacedName{Namespace: "n", Name: "c"}) // as another process
			var err error
			for range 4 { // issue the CA, distribute it, sign with it, look
				if _, err = w.try(); err != nil {
					break
				}
			}
			if errors.Is(err, reconcile.ErrStale) != test.waits || err != nil && !test.waits {
				t.Errorf("the error is %v", err)
			}
			w.r.secrets.invalidate(types.NamespacedName{Namespace: "n", Name: "c"})
			s, _ := w.try()
			for i := range s.Certificates {
				was, is := &first.Certificates[i], &s.Certificates[i]
				if signedAgain := was.Serial != is.Serial; is.Use != v1beta2.CertificateUseCA && signedAgain == test.waits {
					t.Errorf("the %s certificate was signed again: %t", is.Use, signedAgain)
				}
			}
		})
	}
}

func isSameSerials(a, b *seen) bool {
	for i := range a.Certificates {
		if a.Certificates[i].Serial != b.Certificates[i].Serial {
			return false
		}
	}
	return len(a.Certificates) == len(b.Certificates)
}
