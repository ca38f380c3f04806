// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

func setRotationPolicy(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	if err := unstructured.SetNestedField(u.Object, "Never", "spec", "privateKey", "rotationPolicy"); err != nil {
		t.Fatal(err)
	}
}

// mutate is a policy that changes a field of each Certificate that is written. It returns how many writes there were.
func (w *certWorld) mutate() *int {
	writes := 0
	w.dynamic.PrependReactor("update", "certificates", func(action clienttesting.Action) (bool, runtime.Object, error) {
		update, is := action.(clienttesting.UpdateAction)
		if !is {
			return false, nil, nil
		}
		u, is := update.GetObject().(*unstructured.Unstructured)
		if !is {
			return false, nil, nil
		}
		writes++
		changed := u.DeepCopy()
		setRotationPolicy(w.T, changed)
		return true, changed, w.dynamic.Tracker().Update(action.GetResource(), changed, action.GetNamespace())
	})
	return &writes
}

// TestPolicyChangesCertificates: a policy that changes a field with each write does not make the controller write for ever.
func TestPolicyChangesCertificates(t *testing.T) {
	w := newCertWorld(t, requested)
	w.install()
	w.step()
	writes := w.mutate()
	edited := w.request("c-peer-tls")
	setRotationPolicy(t, edited)
	certificates := w.dynamic.Resource(edited.GroupVersionKind().GroupVersion().WithResource("certificates")).Namespace("n")
	if _, err := certificates.Update(t.Context(), edited, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	*writes = 0
	w.clock.SetTime(w.clock.Now().Add(secretLife))
	for range 10 {
		_, err := w.try()
		if !errors.Is(err, errCertificateRewritten) || !strings.Contains(err.Error(), "certificate c-peer-tls: a policy changes what the controller writes: spec.privateKey.rotationPolicy is Never and not Always") {
			t.Fatalf("the error is %v", err)
		}
		if wait := waitFor(err); wait == nil || wait.Reason != planner.ReasonForbidden || !strings.Contains(wait.Remedy, "policy") {
			t.Fatalf("the cluster waits for %+v", wait)
		}
		w.clock.SetTime(w.clock.Now().Add(retrySoon))
	}
	if *writes != 1 {
		t.Errorf("%d writes within a second, want 1", *writes)
	}

	// The declaration changes another field: that is written at once.
	w.cluster = w.cluster.DeepCopy()
	w.cluster.Generation++
	w.cluster.Spec.TLS.CertManager.IssuerRef.Name = "other"
	if _, err := w.try(); !errors.Is(err, errCertificateRewritten) || *writes != 2 {
		t.Errorf("after another declaration: %d writes, %v", *writes, err)
	}
	w.clock.SetTime(w.clock.Now().Add(rewrittenPause))
	if _, err := w.try(); !errors.Is(err, errCertificateRewritten) || *writes != 3 {
		t.Errorf("after the pause: %d writes, %v", *writes, err)
	}
}

// TestPolicyChangesCertificatesNextLook: the next look is not at once if only such a Certificate is left to write.
func TestPolicyChangesCertificatesNextLook(t *testing.T) {
	for name, test := range map[string]struct {
		requeue, want time.Duration
	}{
		"at rest":                {50 * time.Millisecond, retryManual},
		"the next step is there": {time.Millisecond, 0},
	} {
		w := newCertWorld(t, requested)
		w.install()
		w.step()
		w.mutate()
		edited := w.request("c-peer-tls")
		setRotationPolicy(t, edited)
		if err := w.dynamic.Tracker().Update(edited.GroupVersionKind().GroupVersion().WithResource("certificates"), edited, "n"); err != nil {
			t.Fatal(err)
		}
		s := &seen{Observed: planner.Observed{Now: w.clock.Now(), Cluster: w.cluster}}
		r := &run{Reconciler: w.r, key: types.NamespacedName{Namespace: "n", Name: "c"}, seen: s}
		result, err := act(t.Context(), r, planner.Plan{RequeueAfter: test.requeue, Actions: []planner.Action{planner.RequestCertificate{Use: v1beta2.CertificateUsePeer}}})
		if err != nil || result.retryAfter != test.want || result.wait == nil {
			t.Errorf("%s: again after %s, waits for %+v, %v; want %s", name, result.retryAfter, result.wait, err, test.want)
		}
	}
}
