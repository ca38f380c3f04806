// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// effects is what a controller has made.
type effects struct{ jobs, clusters, copies, asked int }

func (w *world) effects() effects {
	return effects{len(w.live.jobs), len(w.live.clusters), len(w.live.backups), w.asked}
}

// touch is somebody who changes the restore, which the caches do not show yet.
func (w *world) touch() {
	r := w.live.restores["r"].DeepCopy()
	metav1.SetMetaDataAnnotation(&r.ObjectMeta, "touched", w.clock.Now().String())
	w.version(r)
	w.live.restores["r"] = r
}

// TestStaleRestore: before anything is made for a restore, the live API must show it as it
// was observed. Here it never does at first.
func TestStaleRestore(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		begin func(*world)
		made  int
	}{
		"in place":   {func(w *world) { w.addCluster(); w.addRestore(nil) }, 0},
		"of nothing": {func(w *world) { w.addRestore(nil) }, 1},
	} {
		w := newWorld(t)
		test.begin(w)
		for range 40 {
			w.sync()
			before := w.effects()
			w.touch()
			if _, err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			if after := w.effects(); after.jobs > before.jobs || after.clusters > before.clusters || after.copies > before.copies || after.asked > before.asked {
				t.Fatalf("%s: %+v became %+v for a restore that is another one now", name, before, after)
			}
			w.turn()
		}
		w.restored(name, test.made)
	}
}

// TestOwnWrites: after a write nothing is asked nor done until the caches show it. A
// finalizer of somebody else stays all the time.
func TestOwnWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addCluster()
	w.addRestore(func(r *v1beta2.EtcdRestore) { r.Finalizers = []string{"somebody/else"} })
	for range 40 {
		w.sync()
		before := w.live.rv
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		if w.live.rv == before {
			w.turn()
			continue
		}
		before, calls := w.live.rv, w.calls
		if after, err := w.reconcile(); err != nil || after == 0 {
			t.Errorf("looks again after %s, %v", after, err)
		}
		if w.live.rv != before || w.calls != calls {
			t.Fatalf("the cache is behind, and there are %d calls: %v", w.calls-calls, w.events)
		}
		w.turn()
	}
	if r := w.live.restores["r"]; !r.Status.Succeeded || len(r.Finalizers) != 1 || r.Finalizers[0] != "somebody/else" {
		t.Errorf("it came to %v, %+v", r.Finalizers, r.Status)
	}
}

// TestJobOfSomebodyElse: what has the name of a Job, and is not of this restore, is neither
// read nor deleted, and nothing is done meanwhile.
func TestJobOfSomebodyElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addCluster()
	w.addRestore(nil)
	w.turn()
	for name, job := range w.live.jobs {
		job = job.DeepCopy()
		job.OwnerReferences[0].UID = "other"
		w.live.jobs[name] = job
	}
	for range 10 {
		w.sync()
		if after, err := w.reconcile(); err != nil || after == 0 {
			t.Fatalf("looks again after %s, %v", after, err)
		}
		w.turn()
	}
	if r := w.live.restores["r"]; w.asked > 0 || len(w.live.jobs) != 1 || len(w.live.backups) > 0 || r.Status.Phase != v1beta2.RestorePhaseVerifying {
		t.Errorf("asked %d times, %d Jobs, %d copies: %+v", w.asked, len(w.live.jobs), len(w.live.backups), r.Status)
	}
	w.clock.SetTime(w.clock.Now().Add(time.Hour))
	clear(w.live.jobs)
	for range 30 {
		w.turn()
	}
	w.restored("when it is gone", 0)
}
