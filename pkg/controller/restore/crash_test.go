// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// How much the caches show: everything at once, everything after a while, or, in a new
// life, what existed at its start.
const (
	fresh   = "fresh"
	lagging = "lagging"
	ancient = "ancient"
)

// life goes on until nothing more can happen. Before a round, deleteIn of them, the user
// deletes the restore; -1 if never.
func (w *world) life(caches string, deleteIn int) {
	w.sync()
	oldest := w.cached.clone()
	for round := range 70 {
		if round == deleteIn {
			w.delete()
		}
		if caches == fresh || round%3 == 2 {
			w.sync()
		}
		after, err := w.reconcile()
		if errors.Is(err, errCrash) {
			w.crashAt = 0
			if caches == ancient {
				w.cached = oldest.clone()
			}
			w.restart()
			continue
		}
		if err != nil {
			w.Fatal(err)
		}
		w.agents()
		if round%2 == 1 {
			w.clusters()
		} else {
			w.copies()
		}
		if after > 0 {
			w.clock.SetTime(w.clock.Now().Add(min(after, 20*time.Second)))
		}
	}
}

// story is a restore, and what must have come of it.
type story struct {
	begin    func(*world)
	deleteIn int
	check    func(*world, string)
}

func stories() map[string]story {
	return map[string]story{
		"in place": {func(w *world) { w.addCluster(); w.addRestore(nil) }, -1, func(w *world, name string) { w.restored(name, 0) }},
		"new": {func(w *world) {
			w.addRestore(func(r *v1beta2.EtcdRestore) {
				r.Spec.ClusterTemplate = &v1beta2.EtcdClusterTemplate{Spec: v1beta2.ClusterSpec{Version: "3.6.16", Replicas: ptr.To[int32](1)}}
			})
		}, -1, func(w *world, name string) { w.restored(name, 1) }},
		"of nothing": {func(w *world) { w.addRestore(nil) }, -1, func(w *world, name string) { w.restored(name, 1) }},
		"corrupt": {func(w *world) { w.addCluster(); w.addRestore(nil); w.fails = agent.ClassCorrupt }, -1, func(w *world, name string) {
			r := w.live.restores["r"]
			if r.Status.Phase != v1beta2.RestorePhaseFailed || w.asked > 0 || w.touched || r.Status.Reason != "it is not good" || len(w.live.jobs) != 1 {
				w.Errorf("%s: asked %d times, %d Jobs, %+v", name, w.asked, len(w.live.jobs), r.Status)
			}
		}},
		"broken store": {func(w *world) { w.addCluster(); w.addRestore(nil); w.fails = agent.ClassStore }, -1, func(w *world, name string) {
			r := w.live.restores["r"]
			if r.Status.Phase != v1beta2.RestorePhaseFailed || w.asked > 0 || len(w.live.jobs) != 1 {
				w.Errorf("%s: asked %d times, %d Jobs, %+v", name, w.asked, len(w.live.jobs), r.Status)
			}
		}},
	}
}

// restored is the good end.
func (w *world) restored(name string, made int) {
	w.Helper()
	r, c := w.live.restores["r"], w.live.clusters["c"]
	if r == nil || !r.Status.Succeeded || r.Status.Phase != v1beta2.RestorePhaseSucceeded || r.Status.Revision != 42 || len(r.Finalizers) > 0 {
		w.Fatalf("%s: %+v", name, r)
	}
	if copies := len(w.live.backups); copies != 1-made {
		w.Errorf("%s: %d pre-restore backups", name, copies)
	}
	if w.asked != 1 || w.made != made || len(w.live.jobs) > 0 || c.Status.Recovery.Phase != v1beta2.RecoveryPhaseSucceeded {
		w.Errorf("%s: asked %d times, %d clusters made, %d Jobs left: %+v", name, w.asked, w.made, len(w.live.jobs), c.Status.Recovery)
	}
	if n := len(slices.DeleteFunc(slices.Clone(w.events), func(e string) bool { return !strings.HasPrefix(e, "RestoreSucceeded") })); n > 1 {
		w.Errorf("%s: events %v", name, w.events)
	}
}

// TestCrashAtEveryCall ends the controller before and after each of its calls, with caches
// that are fresh, that lag and that are old. The cluster gets one request, and the status
// is true.
func TestCrashAtEveryCall(t *testing.T) {
	t.Parallel()
	total := 0
	for name, s := range stories() {
		for _, caches := range []string{fresh, lagging, ancient} {
			calls := 1
			for crashAt := 0; crashAt <= calls; crashAt++ {
				for _, after := range []bool{false, true} {
					w := newWorld(t)
					s.begin(w)
					w.crashAt, w.after = crashAt, after
					w.life(caches, s.deleteIn)
					s.check(w, fmt.Sprintf("%s, caches %s, crash at call %d, after it %t", name, caches, crashAt, after))
					calls = max(calls, w.calls)
					total++
				}
			}
		}
	}
	if total < 100 {
		t.Errorf("only %d stories", total)
	}
	t.Logf("%d stories", total)
}

// TestCancelledAtAnyTime deletes the restore at every moment, and ends the controller at
// every call as well. A cluster whose old members still serve stays as it was. A cluster
// that was made for the restore is deleted with it, and nothing is left behind.
func TestCancelledAtAnyTime(t *testing.T) {
	t.Parallel()
	touched, untouched := 0, 0
	for _, existing := range []bool{true, false} {
		for _, caches := range []string{fresh, lagging, ancient} {
			for deleteIn := range 24 {
				for crashAt := range 24 {
					w := newWorld(t)
					if existing {
						w.addCluster()
					}
					w.addRestore(nil)
					w.crashAt, w.after = crashAt, crashAt%2 == 0
					w.life(caches, deleteIn)
					name := fmt.Sprintf("existing %t, caches %s, deleted in round %d, crash at call %d", existing, caches, deleteIn, crashAt)
					if len(w.live.restores) > 0 {
						w.Fatalf("%s: it is still there: %+v", name, w.live.restores["r"])
					}
					c := w.live.clusters["c"]
					switch {
					case w.touched:
						touched++
						if c == nil || c.Status.Recovery.Phase != v1beta2.RecoveryPhaseSucceeded {
							w.Errorf("%s: it has begun and did not end: %+v", name, c)
						}
					case existing:
						untouched++
						if c == nil || c.Status.Recovery.IsInProgress() || c.Status.Phase != v1beta2.ClusterPhaseRunning {
							w.Errorf("%s: the cluster is %+v", name, c)
						}
					case c != nil:
						w.Errorf("%s: the new cluster is left: %+v", name, c.Status)
					}
				}
			}
		}
	}
	if touched == 0 || untouched == 0 {
		t.Errorf("%d were touched, %d were not", touched, untouched)
	}
}
