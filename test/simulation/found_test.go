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

var foundSchedules = flag.Int("found-schedules", 200, "how many schedules to play in which a cluster finds the PVCs of an earlier one")

// foundStories are ways in which a cluster comes to the PVCs of an earlier cluster of its name.
var foundStories = map[string]func(*schedules.Schedule){
	"a namespace comes back":                                   func(s *schedules.Schedule) { comesBack(s, true) },
	"a namespace comes back and its cluster is to begin empty": func(s *schedules.Schedule) { comesBack(s, false) },
	"deleted with its PVCs retained and created again":         func(s *schedules.Schedule) { createdAgain(s, true) },
	"deleted with its PVCs retained and created again empty":   func(s *schedules.Schedule) { createdAgain(s, false) },
}

// comesBack has a backup tool bring the namespace back, in the middle of what else happens.
func comesBack(s *schedules.Schedule, takesBack bool) {
	d := timeline.NewDice(s.Seed, 31)
	besideFound(s, takesBack)
	s.Events = append(s.Events, schedules.Event{
		At: d.Between(time.Minute, 3*time.Minute), Kind: schedules.EventReturn, A: d.IntN(16), B: d.IntN(16), For: d.Between(10*time.Second, time.Minute),
	})
}

// createdAgain has a user delete the cluster and create it again.
func createdAgain(s *schedules.Schedule, takesBack bool) {
	d := timeline.NewDice(s.Seed, 31)
	besideFound(s, takesBack)
	s.RetainDeleted = true
	s.Events = append(s.Events, schedules.Event{At: d.Between(time.Minute, 3*time.Minute), Kind: schedules.EventRecreate, B: d.IntN(4)})
}

// besideFound leaves out what needs the operator state of before, or destroys what is to come back.
func besideFound(s *schedules.Schedule, takesBack bool) {
	s.Volumes, s.TakesBack, s.Deadly, s.Recovers, s.Automatic, s.LocalVolumes = true, takesBack, false, false, false, false
	s.Events = slices.DeleteFunc(s.Events, func(e schedules.Event) bool { return !slices.Contains(besideOld, e.Kind) })
}

// TestFoundVolumes: a cluster never begins empty beside the data of an earlier one before a person says so. What is
// taken back has every write that was acknowledged.
func TestFoundVolumes(t *testing.T) {
	n := *foundSchedules / len(foundStories)
	if testing.Short() || raceEnabled {
		n = min(n, 5)
	}
	for name, story := range foundStories {
		t.Run(name, func(t *testing.T) {
			variant := Variant{Name: name, story: story}
			total, failed := playAll(n, *firstSeed, variant, nil)
			t.Logf("%v\n%d violations", total, len(failed))
			for _, r := range failed[:min(len(failed), 3)] {
				report(t, r, variant)
			}
		})
	}
}

// TestOneVolumeComesBack: of three PVCs one comes back. The status says that no quorum comes back, nothing
// goes on without a request, and a person recovers the cluster from the PVC, which stays.
func TestOneVolumeComesBack(t *testing.T) {
	plan := schedules.OfSize(3).WithVolumes()
	plan.TakesBack, plan.Automatic, plan.Deadly = true, true, true
	w := faults.New(&plan, timeline.NewStats(), true)
	w.StartManager(0)
	w.After(0, w.Beat)
	w.CreateCluster()
	reach(w, w.Goal)
	w.BringOneBack()
	kept := w.Store.List(kubernetes.KindPVC)[0]
	w.Advance(10 * time.Minute)
	cluster, _ := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
	if cluster.Status.PermanentQuorumLossSince == nil || cluster.Status.Recovery != nil {
		t.Fatalf("the status says %+v\n%s", cluster.Status, tail(w.Log))
	}
	w.RequestRecovery()
	reach(w, func() string {
		c, _ := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
		if !kubernetes.ConditionIs(c, v1beta2.ClusterConditionReady, corev1.ConditionTrue) {
			return "the cluster is not Ready"
		}
		return ""
	})
	if _, found := kubernetes.Lookup[kubernetes.PVC](w.Store, kubernetes.KindPVC, kept.GetName()); !found {
		t.Errorf("PVC %s was deleted\n%s", kept.GetName(), tail(w.Log))
	}
}
