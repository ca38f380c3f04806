// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// The versions between which clusters of the sweep move; the older ones know no
// learners.
const (
	versionBefore = "3.5.27"
	versionAfter  = "3.6.8"
	oldBefore     = "3.2.13"
	oldAfter      = "3.3.27"
)

func ofSize(n int) Schedule { return Schedule{Seed: 1, Size: n, Version: versionBefore} }

func (s Schedule) withVolumes() Schedule {
	s.Volumes = true
	return s
}

func (s Schedule) withSnapshots(count int64) Schedule {
	s.Snapshots = count
	return s
}

func (s Schedule) expandable() Schedule {
	s.Expandable = true
	return s
}

func (s Schedule) withCertificates() Schedule {
	s.Certificates = true
	return s
}

func (s Schedule) withVersion(version string) Schedule {
	s.Version = version
	return s
}

// automatic is a cluster that goes on from a survivor by itself.
func (s Schedule) automatic() Schedule {
	s.Automatic = true
	return s
}

// recovers is a cluster whose owner asks for that.
func (s Schedule) recovers() Schedule {
	s.Recovers = true
	return s
}

// phases is the life of a cluster, piece by piece.
func phases() []phase {
	return []phase{
		{name: "bootstrap", plan: ofSize(3), unborn: true, steps: []step{declared}},
		{name: "bootstrap with volumes", plan: ofSize(3).withVolumes(), unborn: true, steps: []step{declared}},
		{name: "bootstrap without learners", plan: ofSize(3).withVersion(oldBefore), unborn: true, steps: []step{declared}},
		{name: "scale up", plan: ofSize(3), steps: []step{resized(5)}},
		{name: "scale up with volumes", plan: ofSize(1).withVolumes(), steps: []step{resized(3)}},
		{name: "scale down", plan: ofSize(5), steps: []step{resized(3)}},
		{name: "scale down with volumes", plan: ofSize(3).withVolumes(), steps: []step{resized(1)}},
		{name: "scale up and back", plan: ofSize(3), steps: []step{resizedSoon(5), resized(3)}},
		{name: "replace", plan: ofSize(3), steps: []step{podsLost(3, 1)}},
		{name: "replace without learners", plan: ofSize(3).withVersion(oldBefore), steps: []step{podsLost(3, 1)}},
		{name: "come back to a volume", plan: ofSize(3).withVolumes(), steps: []step{podsLost(3, 1)}},
		{name: "come back all at once", plan: ofSize(3).withVolumes(), steps: []step{podsLost(3, 3)}},
		{name: "version", plan: ofSize(3), steps: []step{versioned(versionAfter)}},
		{name: "version with volumes", plan: ofSize(3).withVolumes(), steps: []step{versioned(versionAfter)}},
		{name: "version without learners", plan: ofSize(3).withVersion(oldBefore), steps: []step{versioned(oldAfter)}},
		{name: "from 3.3 to 3.4, and growing", plan: ofSize(1).withVersion(oldAfter), steps: []step{versionedAndResized("3.4.30", 3)}},
		{name: "from 3.5 to 3.7", plan: ofSize(3), steps: []step{versioned("3.6.11"), versioned("3.7.0")}},
		{name: "from 3.4 to 3.6", plan: ofSize(3).withVersion("3.4.30").withSnapshots(1000), steps: []step{versioned("3.5.27"), versioned("3.6.11")}},
		{name: "from 3.5 to 3.7 with volumes, and growing", plan: ofSize(1).withVolumes(), steps: []step{versioned("3.6.11"), versionedAndResized("3.7.0", 3)}},
		{name: "version and size", plan: ofSize(3).withVolumes(), steps: []step{versionedAndResized(versionAfter, 5)}},
		{name: "rollout", plan: ofSize(3), steps: []step{declaredOtherwise}},
		{name: "rollout with volumes", plan: ofSize(3).withVolumes(), steps: []step{declaredOtherwise}},
		{name: "rollout of two with volumes", plan: ofSize(2).withVolumes(), steps: []step{declaredOtherwise}},
		{name: "restart", plan: ofSize(3), steps: []step{restarted}},
		{name: "restart with volumes", plan: ofSize(3).withVolumes(), steps: []step{restarted}},
		{name: "a declaration that does not run, and back", plan: ofSize(3).withVolumes(), steps: []step{declaredBadly, mended}},
		{name: "recovery by itself", plan: ofSize(3).automatic(), steps: []step{majorityLost}},
		{name: "recovery by itself with volumes", plan: ofSize(3).automatic().withVolumes(), steps: []step{majorityLost}},
		{name: "recovery on request", plan: ofSize(3).recovers(), steps: []step{majorityLost}},
		{name: "recovery on request without learners", plan: ofSize(3).withVersion(oldAfter).recovers(), steps: []step{majorityLost}},
		{name: "recovery on request with volumes", plan: ofSize(3).recovers().withVolumes(), steps: []step{majorityLost}},
		{name: "defragmentation", plan: ofSize(3), steps: []step{defragmented}},
		{name: "defragmentation that is cancelled", plan: ofSize(3), steps: []step{defragmentedSoon, cancelled}},
		{name: "defragmentation with volumes", plan: ofSize(1).withVolumes(), steps: []step{defragmented}},
		{name: "bootstrap with certificates", plan: ofSize(3).withCertificates(), unborn: true, steps: []step{declared}},
		{name: "certificate rotation", plan: ofSize(3).withCertificates().withVolumes(), steps: []step{rotated}},
		{name: "restart on request", plan: ofSize(3), steps: []step{restartedOnRequest}},
		{name: "restart on request with volumes", plan: ofSize(3).withVolumes(), steps: []step{restartedOnRequest}},
		{name: "hibernate and wake", plan: ofSize(3).withVolumes(), steps: []step{resized(0), resized(3)}},
		{name: "hibernate and wake larger", plan: ofSize(1).withVolumes(), steps: []step{resized(0), resized(3)}},
		{name: "volumes grow", plan: ofSize(3).withVolumes().expandable(), steps: []step{grown(2)}},
		{name: "volumes may not grow", plan: ofSize(1).withVolumes(), steps: []step{grown(2), grown(1)}},
		{name: "volumes are kept", plan: ofSize(3).withVolumes(), steps: []step{keeping(true), resized(0), resized(3), keeping(false)}},
		{name: "delete", plan: ofSize(3), steps: []step{deleted}},
		{name: "delete while it starts", plan: ofSize(3).withVolumes(), unborn: true, steps: []step{declaredSoon, deleted}},
		{name: "delete and make again", plan: ofSize(3), steps: []step{remade}},
	}
}

var (
	declared     = step{do: (*World).declare, done: (*World).goal}
	declaredSoon = step{do: (*World).declare, done: func(*World) string { return "" }}
	deleted      = step{do: (*World).undeclare, done: (*World).gone}
	rotated      = step{do: func(w *World) { w.rotate(Event{}) }, done: (*World).goal}
	// declaredOtherwise makes every pod another one.
	declaredOtherwise = step{do: func(w *World) { w.userDoes(Event{Kind: EventDeclare, A: 3}) }, done: (*World).goal}
	restarted         = step{do: func(w *World) { w.userDoes(Event{Kind: EventRestart, A: 1}) }, done: (*World).goal}
	declaredBadly     = step{
		do: func(w *World) {
			w.amend(func(s *v1beta2.ClusterSpec) { policyOf(s).EtcdEnv = []corev1.EnvVar{{Name: badEnvironment}} })
		},
		done: declaredSoon.done,
	}
	mended             = step{do: (*World).mend, done: (*World).goal}
	majorityLost       = step{do: func(w *World) { w.disturb(); w.destroyMajority(Event{}) }, done: (*World).goneOn}
	defragmentedSoon   = step{do: (*World).askForDefrag, done: declaredSoon.done}
	cancelled          = step{do: (*World).cancelOperation, done: (*World).goal}
	defragmented       = step{do: (*World).askForDefrag, done: (*World).goal}
	restartedOnRequest = step{do: func(w *World) { w.askForRestart(Event{A: 1}) }, done: (*World).goal}
	remade             = step{do: func(w *World) { w.undeclare(); w.declare() }, done: (*World).goal}
)

// goneOn returns what is missing until a cluster that has lost a majority serves again.
// Members of it may live for long enough to let the others go on without them.
func (w *World) goneOn() string {
	if wrong := w.goal(); wrong != "" {
		return wrong // it also has the owner ask, where that is needed
	}
	cluster, found := lookup[clusterObject](w.store, kindCluster, clusterName)
	if !found || !conditionIs(cluster, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue) {
		return "it does not serve again"
	}
	return ""
}

func resized(n int32) step {
	return step{
		do:   func(w *World) { w.amend(func(s *v1beta2.ClusterSpec) { s.Replicas = ptr.To(n) }) },
		done: (*World).goal,
	}
}

func grown(n int) step {
	return step{
		do:   func(w *World) { w.amend(func(s *v1beta2.ClusterSpec) { sized(s, gibibytes(n)) }) },
		done: (*World).goal,
	}
}

func keeping(keep bool) step {
	return step{
		do:   func(w *World) { w.amend(func(s *v1beta2.ClusterSpec) { kept(s, keep) }) },
		done: (*World).goal,
	}
}

// resizedSoon does not wait for the size to be reached.
func resizedSoon(n int32) step {
	s := resized(n)
	s.done = declaredSoon.done
	return s
}

func versioned(version string) step {
	return step{
		do:   func(w *World) { w.amend(func(s *v1beta2.ClusterSpec) { s.Version = version }) },
		done: (*World).goal,
	}
}

func versionedAndResized(version string, n int32) step {
	return step{
		do: func(w *World) {
			w.amend(func(s *v1beta2.ClusterSpec) { s.Version, s.Replicas = version, ptr.To(n) })
		},
		done: (*World).goal,
	}
}

// podsLost takes pods of a cluster of a size away, with the machines that they ran on
// as good as gone: nobody says goodbye.
func podsLost(size, n int) step {
	return step{
		do: func(w *World) {
			for _, object := range w.store.list(kindPod)[:n] {
				w.store.remove(kindPod, object.GetName())
			}
			w.advance(time.Millisecond)
		},
		done: func(w *World) string {
			if len(w.store.list(kindPod)) != size {
				return "pods are missing"
			}
			return w.goal()
		},
	}
}
