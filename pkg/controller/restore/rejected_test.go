// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// turn lets a few seconds pass, in which each simulated program does what is due.
func (w *world) turn() {
	w.Helper()
	w.sync()
	after, err := w.reconcile()
	if err != nil {
		w.Fatal(err)
	}
	if after > 10*time.Second {
		w.Errorf("it looks again after %s only", after)
	}
	w.agents()
	w.copies()
	w.clusters()
	w.clock.SetTime(w.clock.Now().Add(3 * time.Second))
}

// TestRejected: the status reports within seconds what Kubernetes rejects, for as long as
// that lasts. The restore continues by itself afterwards.
func TestRejected(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		begin func(*world)
		// stop makes Kubernetes reject creations, and accept them again.
		stop func(*world, bool)
		made int
	}{
		"Jobs":               {func(w *world) { w.addCluster(); w.addRestore(nil) }, func(w *world, on bool) { w.full = on }, 0},
		"pods":               {func(w *world) { w.addCluster(); w.addRestore(nil) }, func(w *world, on bool) { w.podless = on }, 0},
		"pre-restore backup": {func(w *world) { w.addCluster(); w.addRestore(nil) }, func(w *world, on bool) { w.full = on && len(w.live.jobs) > 0 }, 0},
		"new cluster":        {func(w *world) { w.addRestore(nil) }, func(w *world, on bool) { w.full = on && len(w.live.jobs) > 0 }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			test.begin(w)
			for range 5 {
				test.stop(w, true)
				w.turn()
			}
			w.clock.SetTime(w.clock.Now().Add(time.Hour))
			test.stop(w, true)
			w.turn()
			r := w.live.restores["r"]
			told := meta.FindStatusCondition(r.Status.Conditions, "Progressing")
			if told == nil || told.Reason != v1beta2.ReasonPodRejected || !strings.Contains(told.Message, "exceeded quota: full") || w.asked > 0 || r.Status.Phase != v1beta2.RestorePhaseVerifying {
				t.Fatalf("asked %d times, it says %+v", w.asked, r.Status)
			}
			test.stop(w, false)
			for range 30 {
				w.turn()
			}
			w.restored(name, test.made)
		})
	}
}

// TestClusterThatMustNotBeDeleted: the template of the restore protects the new cluster. An EtcdRestore that is deleted
// before the data serves ends all the same. The cluster stays, and an event on it says how to delete it.
func TestClusterThatMustNotBeDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addRestore(nil)
	for range 30 {
		w.sync()
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		if c := w.live.clusters["c"]; c != nil {
			c.Spec.DeletionProtection = ptr.To(true)
			break
		}
		w.agents()
	}
	w.delete()
	for range 10 {
		w.turn()
	}
	if len(w.live.restores) > 0 || w.live.clusters["c"] == nil {
		t.Errorf("left are %d EtcdRestores, and the cluster %+v", len(w.live.restores), w.live.clusters["c"])
	}
	if said := strings.Join(w.events, "; "); !strings.Contains(said, "RestoreClusterKept") || !strings.Contains(said, "set spec.deletionProtection=false") {
		t.Errorf("events %s", said)
	}
}
