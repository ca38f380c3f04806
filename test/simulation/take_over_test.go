// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"flag"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/simulation/faults"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
	"github.com/etcd-operator/etcd-operator/test/simulation/timeline"
)

var takeOverSchedules = flag.Int("take-over-schedules", 300, "how many schedules to play in which a cluster takes over an etcd")

// besideOld are the events of a schedule in which a cluster takes over an etcd. The old members run
// on machines that no event reaches, and their etcd has one version.
var besideOld = []schedules.EventKind{
	schedules.EventCall, schedules.EventFreeze, schedules.EventSecondController, schedules.EventKillController, schedules.EventKillContainer,
	schedules.EventDeletePod, schedules.EventForceDeletePod, schedules.EventEvict, schedules.EventPressure, schedules.EventNodeDown, schedules.EventNodeLost,
	schedules.EventDrain, schedules.EventSlowStart, schedules.EventSlowCatchUp, schedules.EventHideMember, schedules.EventCutMember, schedules.EventScale,
	schedules.EventPause, schedules.EventResume, schedules.EventDeleteService, schedules.EventEditService, schedules.EventDeleteBudget, schedules.EventDeletePVC,
	schedules.EventRelabel, schedules.EventDeclare, schedules.EventRestart, schedules.EventBadDeclaration, schedules.EventReject, schedules.EventLoseRecord, schedules.EventHang,
}

// takesOver makes a schedule one in which the cluster takes over an etcd.
func takesOver(s *schedules.Schedule) {
	s.Joins, s.Certificates, s.Deadly, s.Recovers, s.Version = true, false, false, false, "3.5.27"
	s.Events = slices.DeleteFunc(s.Events, func(e schedules.Event) bool { return !slices.Contains(besideOld, e.Kind) })
}

// TestOldMembersLoseTheirData: old members that start again without their data form another etcd with
// the same IDs. The members of the cluster, which hold the data, stay.
func TestOldMembersLoseTheirData(t *testing.T) {
	for name, plan := range map[string]schedules.Schedule{
		"three members":         schedules.OfSize(3).WithVolumes().Joining(),
		"one member":            schedules.OfSize(1).WithVolumes().Joining(),
		"members without PVCs":  schedules.OfSize(3).Joining(),
		"one member without it": schedules.OfSize(1).Joining(),
	} {
		t.Run(name, func(t *testing.T) {
			w := faults.New(&plan, timeline.NewStats(), true)
			w.StartManager(0)
			w.After(0, w.Beat)
			w.CreateCluster()
			reach(w, w.OldMembersKept)
			before := dataOf(w)
			w.Disturb()
			if err := w.Etcd.RestartExistingEmpty(); err != nil {
				t.Fatal(err)
			}
			w.RemoveOldMembers()
			w.Advance(10 * time.Minute)
			if after := dataOf(w); !slices.Equal(before, after) || len(before) < plan.Size {
				t.Errorf("what holds the data was %v and is %v\n%s", before, after, tail(w.Log))
			}
		})
	}
}

// TestOwnVotersAreLostBesideOldMembers: the nodes of all members of the cluster are down while the old members are the
// quorum. Other members replace them.
func TestOwnVotersAreLostBesideOldMembers(t *testing.T) {
	for name, plan := range map[string]schedules.Schedule{
		"one member": schedules.OfSize(1).WithVolumes().Joining(), "two members": schedules.OfSize(2).WithVolumes().Joining(), "members without PVCs": schedules.OfSize(2).Joining(),
	} {
		t.Run(name, func(t *testing.T) {
			w := faults.New(&plan, timeline.NewStats(), true)
			w.StartManager(0)
			w.After(0, w.Beat)
			w.CreateCluster()
			reach(w, w.OldMembersKept)
			w.Disturb()
			for _, n := range w.Nodes {
				pods := 0
				w.EachPodOn(n, func(*corev1.Pod) { pods++ })
				if pods > 0 {
					w.CrashNode(n, 24*time.Hour)
				}
			}
			w.Advance(time.Minute)
			reach(w, w.OldMembersKept)
			if w.Violation != nil {
				t.Errorf("%v\n%s", w.Violation, tail(w.Log))
			}
		})
	}
}

// TestJoinIsGivenUp: a user pauses the cluster and removes its members from the etcd. The status then
// shows what the API server wants to see before it lets the cluster go.
func TestJoinIsGivenUp(t *testing.T) {
	plan := schedules.OfSize(3).WithVolumes().Joining()
	w := faults.New(&plan, timeline.NewStats(), true)
	w.StartManager(0)
	w.After(0, w.Beat)
	w.CreateCluster()
	reach(w, w.OldMembersKept)
	w.Disturb()
	w.Change(func(s *v1beta2.ClusterSpec) { s.Paused = true })
	for _, p := range slices.Clone(w.Etcd.Processes) {
		if p.IsOld() {
			continue
		}
		w.Advance(10 * time.Second)
		if err := w.Etcd.Remove(w.Etcd.OldMembers()[0], p.Dir.Id); err != nil {
			t.Fatal(err)
		}
	}
	w.Advance(2 * time.Minute)
	cluster, _ := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
	old := 0
	for _, m := range cluster.Status.MemberStatuses {
		if m.Unmanaged {
			old++
		}
		if m.Unmanaged != (m.Healthy == corev1.ConditionTrue) {
			t.Errorf("the status says of %s: healthy %s, %s", m.Name, m.Healthy, m.Message)
		}
	}
	if old != 3 || w.Violation != nil {
		t.Errorf("the status has %d old members; %v\n%s", old, w.Violation, tail(w.Log))
	}
}

// dataOf lists the UIDs of the pods and PVCs of members.
func dataOf(w *faults.World) []string {
	var list []string
	for _, kind := range []kubernetes.Kind{kubernetes.KindPod, kubernetes.KindPVC} {
		for _, object := range w.Store.List(kind) {
			list = append(list, string(object.GetUID()))
		}
	}
	slices.Sort(list)
	return list
}

// TestTakeOverSchedules plays schedules with faults in which a cluster takes over an etcd, and its old
// members are removed some time later.
func TestTakeOverSchedules(t *testing.T) {
	n := *takeOverSchedules
	if testing.Short() || raceEnabled {
		n = min(n, 30)
	}
	variant, start := Variant{Name: "takes over an etcd", story: takesOver}, time.Now()
	total, failed := playAll(n, *firstSeed, variant, nil)
	t.Logf("%v\n%d violations, %v", total, len(failed), time.Since(start).Round(10*time.Millisecond))
	for _, r := range failed[:min(len(failed), 3)] {
		report(t, r, variant)
	}
	if total.Rules["take-over"] == 0 {
		t.Error("rule take-over never decided")
	}
}

// TestTakeOverSchedulesThatFailed plays those again in which something was found once.
func TestTakeOverSchedulesThatFailed(t *testing.T) {
	for seed, what := range map[uint64]string{
		525: "the disk of the only own voter hung while the old members elected another leader, and the status called it healthy",
	} {
		plan := schedules.New(seed)
		takesOver(plan)
		if r := Run(plan, Variant{story: takesOver}, timeline.NewStats(), false); r.Violation != nil {
			t.Errorf("seed %d, in which %s: %v", seed, what, r.Violation)
		}
	}
}
