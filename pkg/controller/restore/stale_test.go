// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// effects is what a controller has made.
type effects struct{ jobs, clusters, copies, asked int }

func (w *world) effects() effects {
	return effects{len(w.live.jobs), len(w.live.clusters), len(w.live.backups), w.asked}
}

// touch changes the restore, as another client would, and the caches do not show the change
// yet.
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
				t.Fatalf("%s: %+v became %+v for a restore that was recreated", name, before, after)
			}
			w.turn()
		}
		w.restored(name, test.made)
	}
}

// TestOwnWrites: after a write the controller does nothing until the caches show the write.
// A finalizer of another program stays all the time.
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

// TestJobNotOwned: what has the name of a Job, and is not of this restore, is neither
// read nor deleted, and nothing is done meanwhile.
func TestJobNotOwned(t *testing.T) {
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
	w.restored("after its deletion", 0)
}

// until lets every program continue until the restore has reached the phase.
func (w *world) until(phase v1beta2.RecoveryPhase) {
	w.Helper()
	for range 40 {
		if c := w.live.clusters["c"]; c != nil && c.Status.Recovery != nil && c.Status.Recovery.Phase == phase {
			return
		}
		w.turn()
	}
	w.Fatalf("it never came to %s", phase)
}

// TestRunsOnce: an EtcdRestore that is deleted and created again after it was carried out touches nothing, until a
// user asks for it again.
func TestRunsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addCluster()
	again := func(uid types.UID, value string) *v1beta2.EtcdRestore {
		delete(w.live.restores, "r")
		w.addRestore(func(r *v1beta2.EtcdRestore) {
			r.UID = uid
			if value != "" {
				r.Annotations = map[string]string{v1beta2.AnnotationRestoreAgain: value}
			}
		})
		for range 40 {
			w.turn()
		}
		return w.live.restores["r"]
	}
	for _, test := range []struct {
		uid   types.UID
		value string
		asked int
		phase v1beta2.RestorePhase
	}{
		{"first", "", 1, v1beta2.RestorePhaseSucceeded}, {"second", "", 1, v1beta2.RestorePhaseFailed},
		{"third", "please", 2, v1beta2.RestorePhaseSucceeded}, {"fourth", "please", 2, v1beta2.RestorePhaseFailed}, {"fifth", "", 2, v1beta2.RestorePhaseFailed},
	} {
		backups := len(w.live.backups)
		if r := again(test.uid, test.value); w.asked != test.asked || r.Status.Phase != test.phase {
			t.Fatalf("%s: asked %d times: %+v", test.uid, w.asked, r.Status)
		}
		if test.phase == v1beta2.RestorePhaseFailed && (len(w.live.jobs) > 0 || len(w.live.backups) > backups) {
			t.Errorf("%s: made Jobs %v or backups", test.uid, w.live.jobs)
		}
	}
}

// TestDeletedIsSeenLive: what a deletion depends on is not taken from a cache that does not
// show the request yet: it would be forgotten there, and carried out.
func TestDeletedIsSeenLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addCluster()
	w.addRestore(nil)
	before := w.live.clone().clusters
	w.until(v1beta2.RecoveryPhaseFilling)
	w.delete()
	w.sync()
	w.restart()
	w.cached.clusters = before
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if r, c := w.live.restores["r"], w.live.clusters["c"]; r == nil || len(r.Finalizers) == 0 || !c.Status.Recovery.Cancelled {
		t.Errorf("the recovery continues although no restore requests it: %+v", c.Status.Recovery)
	}
}

// TestOneAfterTheOther: what another restore has asked of the same cluster is waited for,
// what one has asked of another cluster is not.
func TestOneAfterTheOther(t *testing.T) {
	t.Parallel()
	for cluster, waits := range map[string]bool{"c": true, "d": false} {
		w := newWorld(t)
		w.addCluster()
		w.addRestore(nil)
		w.addRestore(func(r *v1beta2.EtcdRestore) {
			r.Name, r.UID, r.Spec.EtcdCluster.Name, r.Status.Phase = "q", "uid-q", cluster, v1beta2.RestorePhaseRestoring
		})
		for range 20 {
			w.turn()
		}
		if (w.asked == 0) != waits {
			t.Errorf("a restore of %s is under way, and c gets %d requests", cluster, w.asked)
		}
	}
}

// TestRecoveryMemberIsTheClusters: a restore is cancelled if the recovery member finds the backup
// damaged. A report of a pod that the cluster does not own counts for nothing.
func TestRecoveryMemberIsTheClusters(t *testing.T) {
	t.Parallel()
	for owner, rejected := range map[types.UID]bool{"uid-c": true, "other": false} {
		w := newWorld(t)
		w.addCluster()
		w.addRestore(nil)
		w.until(v1beta2.RecoveryPhaseFilling)
		result := agent.Result{Command: agent.CommandFetch, ID: "i", Started: epoch, Finished: epoch, Error: &agent.Error{Class: agent.ClassCorrupt, Message: "flipped"}}
		raw, err := result.Encode()
		if err != nil {
			t.Fatal(err)
		}
		w.live.pods["c-recovery"] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "c-recovery", Namespace: namespace, OwnerReferences: []metav1.OwnerReference{{UID: owner, Controller: ptr.To(true)}}},
			Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{
				Name: resources.InitFetch, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: string(raw)}},
			}}},
		}
		for range 3 {
			w.sync()
			if _, err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
		}
		if cancelled := w.live.clusters["c"].Status.Recovery.Cancelled; cancelled != rejected {
			t.Errorf("the pod of %s says that it is damaged: cancelled %t", owner, cancelled)
		}
	}
}

// TestRestoresOfOtherControllers: the cluster decides which controller is responsible. The
// restore decides only while there is no cluster.
func TestRestoresOfOtherControllers(t *testing.T) {
	t.Parallel()
	for _, existing := range []bool{true, false} {
		for _, ofCluster := range []bool{true, false} {
			for _, ofRestore := range []bool{true, false} {
				w := newWorld(t)
				if existing {
					w.addCluster()
				}
				w.addRestore(nil)
				w.sync()
				before := w.live.rv
				w.reconciler.Responsible = func(o metav1.Object) bool {
					if _, ok := o.(*v1beta2.EtcdCluster); ok {
						return ofCluster
					}
					return ofRestore
				}
				if _, err := w.reconcile(); err != nil {
					t.Fatal(err)
				}
				if acts := w.live.rv != before; acts != (existing && ofCluster || !existing && ofRestore) {
					t.Errorf("cluster exists %t and is ours %t, the restore is ours %t: acts %t", existing, ofCluster, ofRestore, acts)
				}
			}
		}
	}
}
