// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// growth gives the claims, in their order, a state of growth.
func growth(why string, states ...resources.Growth) func(*Observed) {
	return func(o *Observed) {
		for i, state := range states {
			o.Claims[i].Growth = state
			if state == resources.GrowthRefused || state == resources.GrowthUnderWay {
				o.Claims[i].GrowthWhy = why
			}
		}
	}
}

func drifted(name string) func(*Observed) {
	return func(o *Observed) {
		for i := range o.Claims {
			o.Claims[i].Drifted = o.Claims[i].Drifted || o.Claims[i].Name == name
		}
	}
}

func TestUpkeepClaims(t *testing.T) {
	const due, enough = resources.GrowthDue, resources.GrownEnough
	all := growth("", due, due, due)
	foreign := func(o *Observed) { o.Claims[1].Owned = false }
	checkDecisions(t, []decision{
		{"as declared", 3, "a:claim b:claim c:claim", nil, "steady"},
		{"larger volumes are declared", 3, "a:claim b:claim c:claim", edits(all), "steady: RepairClaim a, RepairClaim b, RepairClaim c"},
		{"only those that are too small", 3, "a:claim b:claim c:claim", edits(growth("", enough, due, enough)), "steady: RepairClaim b"},
		{"not those that may not", 3, "a:claim b:claim c:claim", edits(growth("", resources.GrowthRefused, resources.GrowthUnderWay, due)), "steady: RepairClaim c"},
		{"another owner is declared", 3, "a:claim b:claim c:claim", edits(drifted("b")), "steady: RepairClaim b"},
		{"not what goes", 3, "a:claim b:claim c:deadclaim", edits(drifted("c")), "steady"},
		{"not what belongs to somebody else", 3, "a:claim b:claim c:claim", edits(drifted("b"), foreign), "steady"},
		{"also while a member joins", 3, "a:claim b:claim c:learner,unstarted,claim", edits(drifted("a")), "in-flight: RepairClaim a, wait WaitingForMember"},
		{"a full volume may have cost the quorum", 3, "a:claim b:claim,sick c:claim,sick", edits(noQuorum, all),
			"quorum: RepairClaim a, RepairClaim b, RepairClaim c, wait QuorumLost"},
		{"asleep", 0, "a:claim,nopod", edits(noQuorum, drifted("a"), hibernated), "hibernate: RepairClaim a"},
		{"not while paused", 3, "a:claim b:claim c:claim", edits(all, pausedSpec), "paused"},
	})
}

func hibernated(o *Observed) { o.Cluster.Status.Phase = v1beta2.ClusterPhaseHibernated }

func TestVolumesAsDeclared(t *testing.T) {
	const due, enough, under, refused = resources.GrowthDue, resources.GrownEnough, resources.GrowthUnderWay, resources.GrowthRefused
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
		{"about to", "a:claim b:claim c:claim", growth("", due, enough, enough), corev1.ConditionFalse, "Growing", []string{"of a"}},
		{"under way", "a:claim b:claim c:claim", growth("a pod must mount it", enough, under, under), corev1.ConditionFalse, "Growing", []string{"of b, c: a pod must mount it"}},
		{"may not", "a:claim b:claim c:claim", growth("the class forbids it", refused, refused, due), corev1.ConditionFalse, v1beta2.ReasonGrowthRefused,
			[]string{"of a, b: the class forbids it", "declare the old size again", resources.AnnotationGrowthRefused}},
		{"one that goes does not matter", "a:claim b:claim c:deadclaim", growth("", enough, enough, refused), corev1.ConditionTrue, "AsDeclared", nil},
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
