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
	of := func(voters int) func(*Observed) { return func(o *Observed) { o.Record.CorruptVoters = voters } }
	held := edits(corruptData, guarded, of(3))
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
		{"a removed member keeps its PVC", 3, "a:claim b:claim c:claim", edits(corruptData, guarded, of(3), withPVC("x", true)), "orphans: ReleasePVC x"},
		{"without PVCs evictions are rejected", 3, "a b c", edits(corruptData, of(3)), "steady: EnsurePodDisruptionBudget 3"},
		{"a user declares more members", 5, "a:claim b:claim c:claim", held, "scale-up: wait DataCorrupt"},
		{"a learner of that user does not vote", 5, "a:claim b:claim c:claim d:claim,learner", held, "joining: wait DataCorrupt"},
		{"more are declared, and a person has deleted a member", 5, "a:claim c:claim", held, "scale-up: AddLearner c-new, AdmitPod c-new[a c c-new]"},
		{"no member joins an etcd that is taken over", 3, "x:old y:old z:old", append(edits(joins), held...), "take-over: wait DataCorrupt"},
		{"one that has joined it does not vote", 3, "x:old y:old z:old a b:learner", append(edits(joins), append(held, of(4))...), "take-over: wait DataCorrupt"},
		{"old members keep their data", 3, "a b c x:old", append(edits(removesOld), append(held, of(4))...), "take-over: wait DataCorrupt"},
		{"the voters are counted before one is removed", 3, "a:claim b:nopod c:claim", edits(corruptData, guarded), "replace: RecordCorruptVoters 3, FindMember b, wait DataCorrupt"},
		{"the voters are counted at rest", 3, "a:claim b:claim c:claim", edits(corruptData, guarded), "steady: RecordCorruptVoters 3"},
		{"old members count", 3, "x:old y:old a", edits(joins, corruptData, guarded), "take-over: RecordCorruptVoters 3, wait DataCorrupt"},
		{"of a single voter all members get a copy", 3, "a:claim", edits(corruptData, guarded), "scale-up: RecordCorruptVoters 3, wait DataCorrupt"},
		{"the alarm is disarmed", 3, "a:claim b:claim c:claim", edits(guarded, of(3)), "steady: RecordCorruptVoters 0"},
	})
}
