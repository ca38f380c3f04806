// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "testing"

func TestRuleQuorum(t *testing.T) {
	checkDecisions(t, []decision{
		{"no list, pods run", 3, "a b c", edits(noQuorum), "quorum: wait EtcdUnreachable"},
		{"no list, a minority is down", 3, "a b c:down", edits(noQuorum), "quorum: wait EtcdUnreachable"},
		{"no list, a majority is down", 3, "a b:down c:down", edits(noQuorum), "quorum: wait QuorumLost"},
		{"no list, a majority is permanently lost", 3, "a b:nopod c:nopod", edits(noQuorum),
			"quorum: FindMember b, FindMember c, wait QuorumLost"},
		{"no list, all pods ready and no leader", 3, "a:noleader b:noleader c:noleader", edits(noQuorum), "quorum: wait QuorumLost"},
		{"no member is known, and neither pods nor PVCs exist", 3, "", edits(noQuorum), "quorum: FindMember a, wait QuorumLost"},
		{"no member is known, and a pod that runs serves no client", 3, "", edits(noQuorum, pod("a", true)), "quorum: wait QuorumLost"},
		{"no member is known, and a pod is ready", 3, "", edits(noQuorum, pod("a", true), func(o *Observed) { o.pod("a").Ready = true }),
			"quorum: wait EtcdUnreachable"},
		{"nothing is removed without a list", 1, "a b:nopod c", edits(noQuorum), "quorum: wait EtcdUnreachable"},
		{"nothing is added without a list", 5, "a b c", edits(noQuorum), "quorum: wait EtcdUnreachable"},
		{"orphans stay without a list", 3, "a b c", edits(noQuorum, pod("x", true)), "quorum: wait EtcdUnreachable"},
	})
}
