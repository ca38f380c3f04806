// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "testing"

// TestCorruptDataHoldsTheMembers: with the alarm CORRUPT the leader a may hold the wrong data. Nothing copies it
// over the right data of another member but the replacement of a member that a person has deleted.
func TestCorruptDataHoldsTheMembers(t *testing.T) {
	guarded := func(o *Observed) {
		if !isPersistent(o.Cluster) {
			o.PodDisruptionBudget.MinAvailable = len(listVoters(o.Etcd.Members))
		}
	}
	held := edits(corruptData, guarded)
	checkDecisions(t, []decision{
		{"the successor of a member on a lost node is not added", 3, "a:claim b:claim,sick,away=10 c:claim", held, "scale-up: wait DataCorrupt"},
		{"one that has joined does not vote", 3, "a:claim b:claim,sick,away=10 c:claim d:claim,learner", held, "joining: wait DataCorrupt"},
		{"one that votes removes nothing", 3, "a:claim b:claim,sick,away=10 c:claim d:claim", held, "scale-down: wait DataCorrupt"},
		{"a template that needs other members", 3, "a b:stale c", held, "scale-up: wait DataCorrupt"},
		{"fewer members are desired", 1, "a b c", held, "scale-down: wait DataCorrupt"},
		{"a voter that is to go is not drained", 1, "a:claim b:claim c:claim", held, "scale-down: wait DataCorrupt"},
		{"a person has deleted the member: it is removed", 3, "a:claim b:nopod c:claim", held, "replace: RemoveMember b Lost"},
		{"its successor joins", 3, "a:claim c:claim", held, "scale-up: AddLearner c-new, AdmitPod c-new[a c c-new]"},
		{"its successor votes", 3, "a:claim c:claim d:claim,learner", held, "joining: PromoteMember d"},
		{"a successor that waited for a vote goes, and its PVC stays", 3, "a:claim b:nopod c:claim d:claim,learner", held, "joining: RemoveMember d Surplus, DeletePod d, ReleasePVC d"},
		{"a removed member keeps its PVC", 3, "a:claim b:claim c:claim", edits(corruptData, guarded, withPVC("x", true)), "orphans: ReleasePVC x"},
		{"without PVCs evictions are rejected", 3, "a b c", edits(corruptData), "steady: EnsurePodDisruptionBudget 3"},
	})
}
