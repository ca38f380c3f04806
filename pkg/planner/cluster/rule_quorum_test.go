// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// unread gives the last status a condition QuorumLost that has had its status for some time.
func unread(status corev1.ConditionStatus, ago time.Duration) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Status.Conditions = append(o.Cluster.Status.Conditions, v1beta2.ClusterCondition{
			Type: v1beta2.ClusterConditionQuorumLost, Status: status, LastTransitionTime: o.Now.Add(-ago).Format(time.RFC3339),
		})
	}
}

func TestRuleQuorum(t *testing.T) {
	checkDecisions(t, []decision{
		{"no list, pods run", 3, "a b c", edits(noQuorum), "quorum: wait EtcdUnreachable"},
		{"no list, a minority is down", 3, "a b c:down", edits(noQuorum), "quorum: wait EtcdUnreachable"},
		{"no list, a majority is down", 3, "a b:down c:down", edits(noQuorum), "quorum: wait QuorumLost"},
		{"no list, a majority is permanently lost", 3, "a b:nopod c:nopod", edits(noQuorum),
			"quorum: FindMember b, FindMember c, wait QuorumLost"},
		{"an election", 3, "a:noleader b:noleader c:noleader", edits(noQuorum), "quorum: wait NoLeader"},
		{"an election after the leader ended", 3, "a:noleader b:noleader c:down", edits(noQuorum), "quorum: wait NoLeader"},
		{"an election that lasts", 3, "a:noleader b:noleader c:noleader", edits(noQuorum, unread(corev1.ConditionUnknown, diagnosis.ElectionGrace-time.Second)),
			"quorum: wait NoLeader"},
		{"an election that never ends", 3, "a:noleader b:noleader c:noleader", edits(noQuorum, unread(corev1.ConditionUnknown, diagnosis.ElectionGrace)),
			"quorum: wait QuorumLost"},
		{"the first election after a loss", 3, "a:noleader b:noleader c:noleader", edits(noQuorum, unread(corev1.ConditionTrue, time.Second)),
			"quorum: wait QuorumLost"},
		{"the second voter of an etcd without learners starts", 2, "a b:unstarted,notready", edits(noQuorum), "quorum: wait NoLeader"},
		{"the first voter of an etcd without learners knows no leader while the second starts", 2, "a:noleader b:unstarted,down", edits(noQuorum), "quorum: wait NoLeader"},
		{"the second voter of an etcd without learners does not start for long", 2, "a:noleader b:unstarted,down", edits(noQuorum, unread(corev1.ConditionUnknown, diagnosis.ElectionGrace)),
			"quorum: wait QuorumLost"},
		{"the pod of the second voter of an etcd without learners no longer exists", 2, "a:claim,noleader b:claim,unstarted,nopod", edits(noQuorum), "recreate-pods: CreatePod b[a b]"},
		{"a voter that had started is down", 2, "a:noleader b:down", edits(noQuorum), "quorum: wait QuorumLost"},
		{"too few are left for an election", 3, "a:noleader b:down c:down", edits(noQuorum), "quorum: wait QuorumLost"},
		{"no member is known, and neither pods nor PVCs exist", 3, "", edits(noQuorum), "quorum: FindMember a, wait QuorumLost"},
		{"no member is known, and a pod that runs serves no client", 3, "", edits(noQuorum, pod("a", true)), "quorum: wait QuorumLost"},
		{"no member is known, and a pod is ready", 3, "", edits(noQuorum, pod("a", true), func(o *Observed) { podByName(o.Pods, "a").Ready = true }),
			"quorum: wait EtcdUnreachable"},
		{"only a learner is known, and no pod of the bootstrap member is seen", 3, "b:learner", edits(noQuorum), "quorum: FindMember a, wait EtcdUnreachable"},
		{"only a learner is known, and the bootstrap member has its pod", 3, "b:learner", edits(noQuorum, pod("a", true)), "quorum: wait EtcdUnreachable"},
		{"nothing is removed without a list", 1, "a b:nopod c", edits(noQuorum), "quorum: wait EtcdUnreachable"},
		{"nothing is added without a list", 5, "a b c", edits(noQuorum), "quorum: wait EtcdUnreachable"},
		{"orphans stay without a list", 3, "a b c", edits(noQuorum, pod("x", true)), "quorum: wait EtcdUnreachable"},
	})
}

// TestQuorumNamesTheBarredVersion: a declared version that no member gets without a quorum is named, before what a person restores.
func TestQuorumNamesTheBarredVersion(t *testing.T) {
	for _, tt := range []decision{
		{"the next minor version may have run", 1, "a:down,podv=3.7.99", edits(noQuorum, lastSaid(testVersion)), "Set spec.version to a version of 3.7, and correct"},
		{"awake with the next minor version declared", 3, "a:claim,down b:claim,down c:claim,down", edits(noQuorum, lastSaid(testVersion), wants("3.7.3"), noResponse), "set spec.version to a version of 3.6 that can."},
		{"as declared", 1, "a:claim,down", edits(noQuorum, lastSaid(testVersion)), ""},
		{"with a quorum", 3, "a:podv=3.7.99 b c", edits(wants("3.7.99")), ""},
	} {
		o := observed(t, tt.size, tt.members, tt.edits...)
		_, remedy := barredVersion(&o)
		if tt.want == "" && remedy != "" || !strings.Contains(remedy, tt.want) {
			t.Errorf("%s: %q", tt.name, remedy)
		}
		if w := Decide(o).Wait; tt.want != "" && (w == nil || !strings.HasPrefix(w.Remedy, remedy+" ")) {
			t.Errorf("%s: %+v", tt.name, w)
		}
	}
}
