// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/faults"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// phases is the life of a cluster, piece by piece.
func phases() []phase {
	return []phase{
		{name: "bootstrap", plan: schedules.OfSize(3), declares: true, steps: []step{created}},
		{name: "bootstrap with volumes", plan: schedules.OfSize(3).WithVolumes(), declares: true, steps: []step{created}},
		{name: "bootstrap without learners", plan: schedules.OfSize(3).WithVersion(schedules.OldBefore), declares: true, steps: []step{created}},
		{name: "take over", plan: schedules.OfSize(3).Joining(), declares: true, steps: []step{joined, oldRemoved}},
		{name: "take over with volumes", plan: schedules.OfSize(1).WithVolumes().Joining(), declares: true, steps: []step{joined, oldRemoved}},
		{name: "take over and remove at once", plan: schedules.OfSize(3).Joining(), declares: true, steps: []step{createdSoon, oldRemoved}},
		{name: "take over and lose a member", plan: schedules.OfSize(3).Joining(), declares: true, steps: []step{joined, podsLostBesideOld, oldRemoved}},
		{name: "scale up", plan: schedules.OfSize(3), steps: []step{resized(5)}},
		{name: "scale up with volumes", plan: schedules.OfSize(1).WithVolumes(), steps: []step{resized(3)}},
		{name: "scale down", plan: schedules.OfSize(5), steps: []step{resized(3)}},
		{name: "scale down with volumes", plan: schedules.OfSize(3).WithVolumes(), steps: []step{resized(1)}},
		{name: "scale up and revert", plan: schedules.OfSize(3), steps: []step{resizedSoon(5), resized(3)}},
		{name: "replace a lost member", plan: schedules.OfSize(3), steps: []step{podsLost(3, 1)}},
		{name: "replace a lost member without learners", plan: schedules.OfSize(3).WithVersion(schedules.OldBefore), steps: []step{podsLost(3, 1)}},
		{name: "recreate a pod with its PVC", plan: schedules.OfSize(3).WithVolumes(), steps: []step{podsLost(3, 1)}},
		{name: "recreate all pods with their PVCs", plan: schedules.OfSize(3).WithVolumes(), steps: []step{podsLost(3, 3)}},
		{name: "upgrade", plan: schedules.OfSize(3), steps: []step{versioned(schedules.VersionAfter)}},
		{name: "upgrade with volumes", plan: schedules.OfSize(3).WithVolumes(), steps: []step{versioned(schedules.VersionAfter)}},
		{name: "upgrade without learners", plan: schedules.OfSize(3).WithVersion(schedules.OldBefore), steps: []step{versioned(schedules.OldAfter)}},
		{name: "upgrade from 3.3 to 3.4 and scale up", plan: schedules.OfSize(1).WithVersion(schedules.OldAfter), steps: []step{versionedAndResized("3.4.30", 3)}},
		{name: "upgrade from 3.5 to 3.7", plan: schedules.OfSize(3), steps: []step{versioned("3.6.11"), versioned("3.7.0")}},
		{name: "upgrade from 3.4 to 3.6", plan: schedules.OfSize(3).WithVersion("3.4.30").WithSnapshots(1000), steps: []step{versioned("3.5.27"), versioned("3.6.11")}},
		{name: "upgrade from 3.5 to 3.7 with volumes and scale up", plan: schedules.OfSize(1).WithVolumes(), steps: []step{versioned("3.6.11"), versionedAndResized("3.7.0", 3)}},
		{name: "upgrade and scale up at once", plan: schedules.OfSize(3).WithVolumes(), steps: []step{versionedAndResized(schedules.VersionAfter, 5)}},
		{name: "rollout", plan: schedules.OfSize(3), steps: []step{changed}},
		{name: "rollout with volumes", plan: schedules.OfSize(3).WithVolumes(), steps: []step{changed}},
		{name: "rollout of two with volumes", plan: schedules.OfSize(2).WithVolumes(), steps: []step{changed}},
		{name: "restart", plan: schedules.OfSize(3), steps: []step{restarted}},
		{name: "restart with volumes", plan: schedules.OfSize(3).WithVolumes(), steps: []step{restarted}},
		{name: "revert a change with which etcd does not start", plan: schedules.OfSize(3).WithVolumes(), steps: []step{changedBadly, repaired}},
		{name: "automatic recovery", plan: schedules.OfSize(3).Automatically(), steps: []step{majorityLost}},
		{name: "automatic recovery with volumes", plan: schedules.OfSize(3).Automatically().WithVolumes(), steps: []step{majorityLost}},
		{name: "automatic recovery from a volume", plan: schedules.OfSize(3).Automatically().WithVolumes(), steps: []step{survivorRestarted}},
		{name: "recovery on request from a volume", plan: schedules.OfSize(3).Recovering().WithVolumes(), steps: []step{survivorRestarted}},
		{name: "recovery on request", plan: schedules.OfSize(3).Recovering(), steps: []step{majorityLost}},
		{name: "recovery on request without learners", plan: schedules.OfSize(3).WithVersion(schedules.OldAfter).Recovering(), steps: []step{majorityLost}},
		{name: "recovery on request with volumes", plan: schedules.OfSize(3).Recovering().WithVolumes(), steps: []step{majorityLost}},
		{name: "defragmentation", plan: schedules.OfSize(3), steps: []step{defragmented}},
		{name: "replacement", plan: schedules.OfSize(3), steps: []step{replaced}},
		{name: "replacement with volumes", plan: schedules.OfSize(3).WithVolumes(), steps: []step{replaced}},
		{name: "replacement of the only member", plan: schedules.OfSize(1).WithVolumes(), steps: []step{replaced}},
		{name: "replacement of a member whose node is down", plan: schedules.OfSize(3).WithVolumes(), steps: []step{replacedOnDownNode}},
		{name: "replacement of a member whose node is down without learners", plan: schedules.OfSize(3).WithVolumes().WithVersion(schedules.OldBefore), steps: []step{replacedOnDownNode}},
		{name: "drain of the node of the only member", plan: schedules.OfSize(1), steps: []step{drained}},
		{name: "drain of the node of the only member with a volume", plan: schedules.OfSize(1).WithVolumes(), steps: []step{drained}},
		{name: "drain of the node of the only member without learners", plan: schedules.OfSize(1).WithVersion(schedules.OldBefore), steps: []step{drained}},
		{name: "drain of a node of two members", plan: schedules.OfSize(2).WithVolumes(), steps: []step{drained}},
		{name: "cancelled defragmentation", plan: schedules.OfSize(3), steps: []step{defragmentedSoon, cancelled}},
		{name: "defragmentation with volumes", plan: schedules.OfSize(1).WithVolumes(), steps: []step{defragmented}},
		{name: "bootstrap with certificates", plan: schedules.OfSize(3).WithCertificates(), declares: true, steps: []step{created}},
		{name: "certificate rotation", plan: schedules.OfSize(3).WithCertificates().WithVolumes(), steps: []step{rotated}},
		{name: "restart on request", plan: schedules.OfSize(3), steps: []step{restartedOnRequest}},
		{name: "restart on request with volumes", plan: schedules.OfSize(3).WithVolumes(), steps: []step{restartedOnRequest}},
		{name: "hibernate and wake", plan: schedules.OfSize(3).WithVolumes(), steps: []step{resized(0), resized(3)}},
		{name: "hibernate and wake with more members", plan: schedules.OfSize(1).WithVolumes(), steps: []step{resized(0), resized(3)}},
		{name: "volumes grow", plan: schedules.OfSize(3).WithVolumes().WithExpandableVolumes(), steps: []step{grown(2)}},
		{name: "volumes that may not grow", plan: schedules.OfSize(1).WithVolumes(), steps: []step{grown(2), grown(1)}},
		{name: "hibernate and keep volumes", plan: schedules.OfSize(3).WithVolumes(), steps: []step{keeping(true), resized(0), resized(3), keeping(false)}},
		{name: "delete", plan: schedules.OfSize(3), steps: []step{deleted}},
		{name: "delete while it starts", plan: schedules.OfSize(3).WithVolumes(), declares: true, steps: []step{createdSoon, deleted}},
		{name: "delete and recreate", plan: schedules.OfSize(3), steps: []step{remade}},
	}
}

var (
	created     = step{do: (*faults.World).CreateCluster, done: (*faults.World).Goal}
	createdSoon = step{do: (*faults.World).CreateCluster, done: func(*faults.World) string { return "" }}
	joined      = step{do: (*faults.World).CreateCluster, done: (*faults.World).OldMembersKept}
	oldRemoved  = step{do: (*faults.World).RemoveOldMembers, done: (*faults.World).Goal}
	// podsLostBesideOld loses a pod without a volume while old members are kept.
	podsLostBesideOld = step{do: podsLost(3, 1).do, done: (*faults.World).OldMembersKept}
	deleted           = step{do: (*faults.World).DeleteCluster, done: gone}
	rotated           = step{do: func(w *faults.World) { w.RotateCA(schedules.Event{}) }, done: (*faults.World).Goal}
	// changed replaces every pod.
	changed      = step{do: func(w *faults.World) { w.UserDoes(schedules.Event{Kind: schedules.EventDeclare, A: 3}) }, done: (*faults.World).Goal}
	restarted    = step{do: func(w *faults.World) { w.UserDoes(schedules.Event{Kind: schedules.EventRestart, A: 1}) }, done: (*faults.World).Goal}
	changedBadly = step{
		do: func(w *faults.World) {
			w.Change(func(s *v1beta2.ClusterSpec) {
				faults.PolicyOf(s).EtcdEnv = []corev1.EnvVar{{Name: simetcd.BadEnvironment}}
			})
		},
		done: createdSoon.done,
	}
	repaired           = step{do: (*faults.World).Repair, done: (*faults.World).Goal}
	majorityLost       = step{do: func(w *faults.World) { w.Disturb(); w.DestroyMajority(schedules.Event{}) }, done: recovered}
	survivorRestarted  = step{do: restartSurvivor, done: recovered}
	defragmentedSoon   = step{do: (*faults.World).AskForDefrag, done: createdSoon.done}
	replaced           = step{do: (*faults.World).AskForReplacement, done: (*faults.World).Goal}
	replacedOnDownNode = step{do: replaceOnDownNode, done: (*faults.World).Goal}
	drained            = step{do: drainFirst, done: leftNode}
	cancelled          = step{do: (*faults.World).CancelOperation, done: (*faults.World).Goal}
	defragmented       = step{do: (*faults.World).AskForDefrag, done: (*faults.World).Goal}
	restartedOnRequest = step{do: func(w *faults.World) { w.AskForRestart(schedules.Event{A: 1}) }, done: (*faults.World).Goal}
	remade             = step{do: func(w *faults.World) { w.DeleteCluster(); w.CreateCluster() }, done: (*faults.World).Goal}
)

// restartSurvivor destroys all members but one, and then restarts the etcd of the survivor.
func restartSurvivor(w *faults.World) {
	w.Disturb()
	w.DestroyMajority(schedules.Event{})
	w.CarryOut(schedules.Event{Kind: schedules.EventKillContainer})
}

// recovered returns what is missing until a cluster that has lost a majority serves again.
// Members of it may live for long enough to let the others go on without them.
func recovered(w *faults.World) string {
	if wrong := w.Goal(); wrong != "" {
		return wrong // it also has the owner ask, where that is needed
	}
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
	if !found || !kubernetes.ConditionIs(cluster, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue) {
		return "it does not serve again"
	}
	return ""
}

func resized(n int32) step {
	return step{
		do:   func(w *faults.World) { w.Change(func(s *v1beta2.ClusterSpec) { s.Replicas = ptr.To(n) }) },
		done: (*faults.World).Goal,
	}
}

func grown(n int) step {
	return step{
		do:   func(w *faults.World) { w.Change(func(s *v1beta2.ClusterSpec) { faults.Sized(s, faults.Gibibytes(n)) }) },
		done: (*faults.World).Goal,
	}
}

func keeping(keep bool) step {
	return step{
		do:   func(w *faults.World) { w.Change(func(s *v1beta2.ClusterSpec) { faults.Kept(s, keep) }) },
		done: (*faults.World).Goal,
	}
}

// resizedSoon does not wait for the size to be reached.
func resizedSoon(n int32) step {
	s := resized(n)
	s.done = createdSoon.done
	return s
}

func versioned(version string) step {
	return step{
		do:   func(w *faults.World) { w.Change(func(s *v1beta2.ClusterSpec) { s.Version = version }) },
		done: (*faults.World).Goal,
	}
}

func versionedAndResized(version string, n int32) step {
	return step{
		do: func(w *faults.World) {
			w.Change(func(s *v1beta2.ClusterSpec) { s.Version, s.Replicas = version, ptr.To(n) })
		},
		done: (*faults.World).Goal,
	}
}

// podsLost removes n pods of a cluster of a size, as if their machines had failed: no member
// shuts down in order.
func podsLost(size, n int) step {
	return step{
		do: func(w *faults.World) {
			for _, object := range w.Store.List(kubernetes.KindPod)[:n] {
				w.Store.Remove(kubernetes.KindPod, object.GetName())
			}
			w.Advance(time.Millisecond)
		},
		done: func(w *faults.World) string {
			if len(w.Store.List(kubernetes.KindPod)) != size {
				return "pods are missing"
			}
			return w.Goal()
		},
	}
}

// replaceOnDownNode asks for another member in the place of one whose node goes down.
func replaceOnDownNode(w *faults.World) {
	w.AskForReplacement()
	cluster, found := kubernetes.Lookup[*v1beta2.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
	if !found || cluster.Status.Operation == nil {
		w.Violated("L1", "the replacement was not requested")
		return
	}
	for _, r := range w.Runs {
		if r.Name() == cluster.Status.Operation.Members[0] {
			w.CrashNode(r.Node, schedules.EvictAfter)
			return
		}
	}
}

// drainFirst drains the node of the first pod permanently.
func drainFirst(w *faults.World) {
	w.Drain(w.Runs[0].Node, func(*corev1.Pod) bool { return true })
}

// leftNode returns what is missing until no member is on a node that is drained.
func leftNode(w *faults.World) string {
	for _, n := range w.Nodes {
		if !n.Cordoned {
			continue
		}
		left := ""
		w.EachPodOn(n, func(pod *corev1.Pod) { left = pod.Name })
		if left != "" {
			return "pod " + left + " is on a cordoned node"
		}
	}
	return w.Goal()
}
