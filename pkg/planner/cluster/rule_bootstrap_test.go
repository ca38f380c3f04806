// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestRuleBootstrap(t *testing.T) {
	created := func(o *Observed) { o.Cluster.Status.Phase = v1beta2.ClusterPhaseCreating }
	unrecorded := func(o *Observed) { o.PeerService.Seed = "" }
	seedPod := func(edit func(*Pod)) func(*Observed) {
		return func(o *Observed) {
			p := Pod{Name: "a", UID: "pod-a", Owned: true, Running: true, Version: testVersion}
			if edit != nil {
				edit(&p)
			}
			o.Pods = append(o.Pods, p)
		}
	}
	volumeOf := func(version string) func(*Observed) {
		return func(o *Observed) {
			claim("a", true)(o)
			o.Claims[len(o.Claims)-1].Version = version
		}
	}
	checkDecisions(t, []decision{
		{"silent once the cluster was recorded", 1, "a", nil, "steady"},
		{"the seed", 3, "", edits(silent), "bootstrap: CreateSeed a"},
		{"the seed and its volume", 3, "", edits(silent, persist), "bootstrap: CreateClaim a, CreateSeed a"},
		{"the seed on the volume that it had", 3, "", edits(silent, claim("a", true)), "bootstrap: CreateSeed a"},
		{"the seed on a volume of an older minor version", 3, "", edits(silent, volumeOf("3.5.26")), "bootstrap: CreateSeed a 3.5.26"},
		{"the seed on a volume of another patch release", 3, "", edits(silent, volumeOf("3.6.8")), "bootstrap: CreateSeed a"},
		{"the seed on a volume of a newer version", 3, "", edits(silent, volumeOf("3.7.0")), "bootstrap: CreateSeed a"},
		{"the seed of an older version starts", 3, "", edits(silent, volumeOf("3.5.26"), seedPod(func(p *Pod) { p.Outdated, p.Running, p.Version = true, false, "3.5.26" })),
			"bootstrap: wait WaitingForSeed"},
		{"the seed is too new for its volume and does not run", 3, "", edits(silent, volumeOf("3.5.26"), seedPod(func(p *Pod) { p.Running = false })),
			"bootstrap: DeleteSeed a"},
		{"the record was wiped and the seed answers", 3, "a", edits(unborn, unrecorded), "bootstrap: RecordBootstrap c0ffee"},
		{"the record was wiped and two members answer", 3, "a b", edits(unborn, unrecorded), "bootstrap: RecordBootstrap c0ffee"},
		{"the record was wiped and one pod is no member", 3, "a", edits(unborn, unrecorded, pod("b", true)), "bootstrap: wait SeedUnknown"},
		{"the record was wiped and the seed goes away", 3, "a:terminating", edits(unborn, unrecorded), "bootstrap: wait SeedUnknown"},
		{"another seed than the one of the record", 3, "", edits(silent, pod("b", true)), "bootstrap: wait SeedUnknown"},
		{"no record of a seed", 3, "", edits(silent, unrecorded), "bootstrap: wait SeedUnknown"},
		{"size 0 has no seed", 0, "", edits(silent), "bootstrap: wait NoMembersWanted"},
		{"the seed starts", 3, "", edits(silent, seedPod(nil)), "bootstrap: wait WaitingForSeed"},
		{"the seed goes away", 3, "", edits(silent, seedPod(func(p *Pod) { p.Terminating = true })), "bootstrap: wait WaitingForSeed"},
		{"the seed was evicted", 3, "", edits(silent, seedPod(func(p *Pod) { p.Finished = true })), "bootstrap: DeleteSeed a"},
		{"the seed waits for an image that is not wanted any more", 3, "", edits(silent, seedPod(func(p *Pod) { p.Outdated, p.Running = true, false })),
			"bootstrap: DeleteSeed a"},
		{"a seed that runs is never deleted", 3, "", edits(silent, seedPod(func(p *Pod) { p.Outdated = true })), "bootstrap: wait WaitingForSeed"},
		{"the volume of the seed was deleted before it ran", 3, "", edits(silent, persist, seedPod(func(p *Pod) { p.Running = false })),
			"bootstrap: CreateClaim a, wait WaitingForSeed"},
		{"the seed answers", 3, "a", edits(unborn), "bootstrap: RecordBootstrap c0ffee"},
		{"the seed answers and goes away: nobody shall write to it", 3, "a:terminating", edits(unborn), "bootstrap: wait WaitingForSeed"},
		{"a seed that answered and is lost before anybody was let in", 3, "", edits(silent, func(o *Observed) {
			o.Cluster.Status = v1beta2.ClusterStatus{
				Phase: v1beta2.ClusterPhaseCreating, MemberStatuses: []v1beta2.MemberStatus{{Name: "a", ID: "1"}},
			}
		}), "bootstrap: CreateSeed a"},
		{"somebody else answers", 3, "b", edits(unborn), "bootstrap: wait SeedUnknown"},
		{"no clients are let in before the status says that it serves", 1, "a", edits(clients(Missing), created), "steady"},
		{"then they are", 1, "a", edits(clients(Missing)), "steady: EnsureClientService"},
		{"no clients are let in before the record stands", 3, "", edits(silent, seedPod(nil), clients(Missing)), "bootstrap: wait WaitingForSeed"},
	})
}

// TestBootstrappedOnce goes through every place that says that a cluster has served:
// each alone must be enough to never make a seed again.
func TestBootstrappedOnce(t *testing.T) {
	status := func(s v1beta2.ClusterStatus) func(*Observed) {
		return func(o *Observed) { o.Cluster.Status = s }
	}
	for name, proof := range map[string]func(*Observed){
		"record":         func(o *Observed) { o.PeerService.ClusterID = "c0ffee" },
		"record unknown": func(o *Observed) { o.PeerService.ClusterID = unknownClusterID },
		"running":        status(v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseRunning}),
		"failed":         status(v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseFailed}),
		"hibernated":     status(v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseHibernated}),
		"client service": clients(Current),
	} {
		for _, service := range []bool{true, false} {
			o := observed(t, 3, "", silent, proof)
			if !service {
				o.PeerService.State = Missing
			}
			plan := Decide(o)
			for _, a := range plan.Actions {
				switch a := a.(type) {
				case CreateSeed:
					t.Errorf("%s: a second seed: %s", name, describe(plan))
				case CreatePeerService:
					if a.Seed != "" || a.ClusterID == "" {
						t.Errorf("%s: a second claim for a seed: %s", name, describe(plan))
					}
				}
			}
		}
	}
}
