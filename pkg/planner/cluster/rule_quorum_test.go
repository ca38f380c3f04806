// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "testing"

func TestRuleHibernate(t *testing.T) {
	checkDecisions(t, []decision{
		{"pods with volumes go", 0, "a:claim b:claim c:claim", nil, "hibernate: DeletePod a, DeletePod b, DeletePod c"},
		{"pods that go already do not go twice", 0, "a:claim,terminating b:claim", nil, "hibernate: DeletePod b"},
		{"data without a volume is never touched", 0, "a b:claim c:deadclaim", nil, "hibernate: DeletePod b"},
		{"it needs no quorum", 0, "a:claim b:claim,down c:claim,nopod", edits(noQuorum), "hibernate: DeletePod a, DeletePod b"},
		{"asleep", 0, "a:claim,nopod b:claim,nopod", edits(noQuorum), "hibernate"},
		{"somebody else's pods stay", 0, "a:claim,theirs", edits(noQuorum), "hibernate"},
		{"orphans wait", 0, "a:claim,nopod", edits(noQuorum, claim("gone", true)), "hibernate"},
	})
}

func TestRuleReturn(t *testing.T) {
	checkDecisions(t, []decision{
		{"a lost pod comes back to its volume", 3, "a:claim b:claim c:claim,nopod", nil, "return: CreatePod c[a b c]"},
		{"without a quorum too", 3, "a:claim b:claim,nopod c:claim,nopod", edits(noQuorum), "return: CreatePod b[a b c], CreatePod c[a b c]"},
		{"all of them, from nothing", 3, "a:claim,nopod b:claim,nopod c:claim,nopod", edits(noQuorum),
			"return: CreatePod a[a b c], CreatePod b[a b c], CreatePod c[a b c]"},
		{"without any list the volumes are the list", 3, "", edits(noQuorum, claim("a", true), claim("b", true)),
			"return: CreatePod a[a b], CreatePod b[a b]"},
		{"a member that the last status did not know counts itself in", 3, "a:claim", edits(noQuorum, claim("b", true)), "return: CreatePod b[a b]"},
		{"an evicted pod makes room", 3, "a:claim b:claim c:claim,finished", nil, "return: DeletePod c"},
		{"a pod that goes is waited for", 3, "a:claim b:claim c:claim,terminating", nil, "replace: wait WaitingForPod"},
		{"a pod whose volume is gone before it ran", 3, "a:claim b:claim c:down", nil, "return: DeleteStranded c"},
		{"the same, of a learner", 3, "a:claim b:claim c:down,learner,unstarted", nil, "return: DeleteStranded c"},
		{"a pod whose volume goes with it", 3, "a:claim b:claim c:down,deadclaim", nil, "steady"},
		{"a pod that runs on a volume that cannot be seen", 3, "a:claim b:claim c", nil, "steady"},
		{"a volume that goes brings nobody back", 3, "a:claim b:claim c:deadclaim,nopod", nil, "replace: RemoveMember c Lost"},
		{"nor does one of nobody's", 3, "a:claim b:claim c:claim", edits(claim("gone", true)), "orphans: DeleteClaim gone"},
		{"nor one of somebody else's", 3, "a:claim b:claim c:claim", edits(claim("old", false)), "steady"},
		{"a learner too", 3, "a:claim b:claim c:claim,learner,nopod", nil, "return: CreatePod c[a b c]"},
		{"as what it was, not as what is wanted", 3, "a:claim b:claim c:claim,nopod", edits(wants("3.7.0"), lastSaid("3.6.11")),
			"return: CreatePod c[a b c] 3.6.11"},
		{"one that has never run comes as the others are", 3, "a:claim b:claim c:claim,learner,unstarted,nopod", edits(wants("3.8.0")),
			"return: CreatePod c[a b c] 3.6.11"},
		{"as what its volume has seen, whatever was last said", 3, "a:claim b:claim c:claimv=3.7.0,nopod", edits(wants("3.6.11"), lastSaid("3.6.11")),
			"return: CreatePod c[a b c] 3.7.0"},
		{"awake as it fell asleep", 1, "a:claim,nopod", edits(noQuorum, wants("3.6.9"), lastSaid("3.6.11")), "return: CreatePod a[a] 3.6.11"},
	})
}

func TestRuleQuorum(t *testing.T) {
	otherID := func(id string) func(*Observed) { return func(o *Observed) { o.PeerService.ClusterID = id } }
	checkDecisions(t, []decision{
		{"no list, pods run", 3, "a b c", edits(noQuorum), "quorum: wait EtcdUnreachable"},
		{"no list, a minority is down", 3, "a b c:down", edits(noQuorum), "quorum: wait EtcdUnreachable"},
		{"no list, a majority is down", 3, "a b:down c:down", edits(noQuorum), "quorum: wait QuorumLost"},
		{"no list, a majority is gone for good", 3, "a b:nopod c:nopod", edits(noQuorum),
			"quorum: FindMember b, FindMember c, wait QuorumLost"},
		{"no list, all pods ready and no leader", 3, "a:noleader b:noleader c:noleader", edits(noQuorum), "quorum: wait QuorumLost"},
		{"nobody is known and nothing is left", 3, "", edits(noQuorum), "quorum: FindMember a, wait QuorumLost"},
		{"nobody is known and a pod that runs serves nobody", 3, "", edits(noQuorum, pod("a", true)), "quorum: wait QuorumLost"},
		{"nobody is known and a pod is ready", 3, "", edits(noQuorum, pod("a", true), func(o *Observed) { o.pod("a").Ready = true }),
			"quorum: wait EtcdUnreachable"},
		{"nothing is removed without a list", 1, "a b:nopod c", edits(noQuorum), "quorum: wait EtcdUnreachable"},
		{"nothing is added without a list", 5, "a b c", edits(noQuorum), "quorum: wait EtcdUnreachable"},
		{"orphans stay without a list", 3, "a b c", edits(noQuorum, pod("x", true)), "quorum: wait EtcdUnreachable"},
		{"another cluster answers", 3, "a:nopod b c", edits(otherID("bad")), "cluster-id: FindMember a, wait ClusterIDMismatch"},
		{"an ID that is not known is not compared", 3, "a b c", edits(otherID(unknownClusterID)), "steady: RecordBootstrap c0ffee"},
		{"a member of somebody else's", 3, "a b c d:stranger", nil, "strangers: wait UnknownMember"},
		{"stops repairs too", 3, "a:nopod b c d:stranger", nil, "strangers: FindMember a, wait UnknownMember"},
	})
}
