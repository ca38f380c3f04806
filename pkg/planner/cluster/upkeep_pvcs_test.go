// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// growth gives the PVCs, in their order, a state of growth.
func growth(why string, states ...resources.Growth) func(*Observed) {
	return func(o *Observed) {
		for i, state := range states {
			o.PVCs[i].Growth = state
			if state == resources.GrowthRejected || state == resources.GrowthUnderWay {
				o.PVCs[i].GrowthWhy = why
			}
		}
	}
}

func drifted(name string) func(*Observed) {
	return func(o *Observed) {
		for i := range o.PVCs {
			o.PVCs[i].Drifted = o.PVCs[i].Drifted || o.PVCs[i].Name == name
		}
	}
}

func TestUpkeepPVCs(t *testing.T) {
	const due, enough = resources.GrowthDue, resources.GrownEnough
	all := growth("", due, due, due)
	notOwned := func(o *Observed) { o.PVCs[1].Owned = false }
	checkDecisions(t, []decision{
		{"as declared", 3, "a:claim b:claim c:claim", nil, "steady"},
		{"larger volumes are declared", 3, "a:claim b:claim c:claim", edits(all), "steady: RepairPVC a, RepairPVC b, RepairPVC c"},
		{"only those that are too small", 3, "a:claim b:claim c:claim", edits(growth("", enough, due, enough)), "steady: RepairPVC b"},
		{"not those that may not", 3, "a:claim b:claim c:claim", edits(growth("", resources.GrowthRejected, resources.GrowthUnderWay, due)), "steady: RepairPVC c"},
		{"another owner is declared", 3, "a:claim b:claim c:claim", edits(drifted("b")), "steady: RepairPVC b"},
		{"not what goes", 3, "a:claim b:claim c:deadclaim", edits(drifted("c")), "steady"},
		{"not what is not owned", 3, "a:claim b:claim c:claim", edits(drifted("b"), notOwned), "steady"},
		{"a PVC is repaired while a member joins", 3, "a:claim b:claim c:learner,unstarted,claim", edits(drifted("a")), "joining: RepairPVC a, wait WaitingForMember"},
		{"a full volume may have cost the quorum", 3, "a:claim b:claim,sick c:claim,sick", edits(noQuorum, all),
			"quorum: RepairPVC a, RepairPVC b, RepairPVC c, wait QuorumLost"},
		{"asleep", 0, "a:claim,nopod", edits(noQuorum, drifted("a"), hibernated), "hibernate: RepairPVC a"},
		{"not while paused", 3, "a:claim b:claim c:claim", edits(all, pausedSpec), "paused"},
	})
}

func hibernated(o *Observed) { o.Cluster.Status.Phase = v1beta2.ClusterPhaseHibernated }

func TestVolumesAsDeclared(t *testing.T) {
	const due, enough, under, rejected = resources.GrowthDue, resources.GrownEnough, resources.GrowthUnderWay, resources.GrowthRejected
	for _, tt := range []struct {
		name    string
		members string
		edit    func(*Observed)
		status  corev1.ConditionStatus
		reason  string
		says    []string
	}{
		{"no volumes", "a b c", func(*Observed) {}, "", "", nil},
		{"as declared", "a:claim b:claim c:claim", growth("", enough, enough, enough), corev1.ConditionTrue, "AsDeclared", nil},
		{"about to", "a:claim b:claim c:claim", growth("", due, enough, enough), corev1.ConditionFalse, "Growing", []string{"grow: a"}},
		{"under way", "a:claim b:claim c:claim", growth("a pod must mount it", enough, under, under), corev1.ConditionFalse, "Growing", []string{"grow: b, c: a pod must mount it"}},
		{"of another class", "a:claim b:claim c:claim", func(o *Observed) {
			o.Cluster.Spec.Pod.PersistentVolumeClaimSpec.VolumeAttributesClassName = ptr.To("fast")
			o.PVCs[1].OtherAttributes, o.PVCs[2].OtherAttributes = true, true
		}, corev1.ConditionFalse, "AttributesDiffer", []string{"the declared fast: b, c", `patch pvc NAME --type=merge -p '{"spec":{"volumeAttributesClassName":"fast"}}'`}},
		{"may not", "a:claim b:claim c:claim", growth("the class forbids it", rejected, rejected, due), corev1.ConditionFalse, v1beta2.ReasonGrowthRejected,
			[]string{"PVCs a, b: the class forbids it", "Declare the old size again", resources.AnnotationGrowthRejected}},
		{"may not, and one is being deleted", "a:claim b:claim c:deadclaim", growth("", enough, rejected, enough), corev1.ConditionFalse, v1beta2.ReasonGrowthRejected,
			[]string{"PVCs b.", "Declare the old size again", "deleted: c.", "kubectl etcd replace"}},
		{"one that is being deleted", "a:claim b:claim c:deadclaim", growth("", enough, enough, rejected), corev1.ConditionFalse, "VolumesBeingDeleted", []string{"deleted: c.", "kubectl etcd replace"}},
		{"of a member that was removed", "a:claim b:claim c:claim", func(o *Observed) {
			pod("d", true)(o)
			withPVC("d", true)(o)
			o.PVCs[3].Terminating = true
		}, corev1.ConditionTrue, "AsDeclared", nil},
		{"one that goes does not matter", "a:claim b:claim c:deadclaim,nopod", growth("", enough, enough, rejected), corev1.ConditionTrue, "AsDeclared", nil},
	} {
		o := observed(t, 3, tt.members, tt.edit)
		c := find(Status(o, Decide(o)), v1beta2.ClusterConditionVolumesAsDeclared)
		if tt.status == "" {
			if c != nil {
				t.Errorf("%s: a cluster without volumes has the condition %+v", tt.name, c)
			}
			continue
		}
		if c == nil || c.Status != tt.status || c.Reason != tt.reason {
			t.Errorf("%s: %+v, not %s (%s)", tt.name, c, tt.status, tt.reason)
			continue
		}
		for _, want := range tt.says {
			if !strings.Contains(c.Message, want) {
				t.Errorf("%s: %q is missing in %q", tt.name, want, c.Message)
			}
		}
	}
}
