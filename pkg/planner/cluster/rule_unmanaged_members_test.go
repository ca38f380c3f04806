// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
)

func TestRuleUnmanagedMembers(t *testing.T) {
	checkDecisions(t, []decision{
		{"an unmanaged member", 3, "a b c d:unmanaged", nil, "unmanaged-members: wait UnmanagedMember"},
		{"no change of the size beside an unmanaged member", 3, "a b c e d:podless", nil, "unmanaged-members: wait UnmanagedMember"},
		{"no rollout beside an unmanaged member", 3, "a:stale b c d:podless", nil, "unmanaged-members: wait UnmanagedMember"},
		{"nothing while an unmanaged member has not started", 3, "a:nopod b c d:podless,unstarted", nil, "unmanaged-members: FindMember a, wait UnmanagedMember"},
		{"nothing while an unmanaged learner joins", 3, "a:nopod b c d:podless,learner", nil, "unmanaged-members: FindMember a, wait UnmanagedMember"},
		{"a lost member waits for its successor", 3, "a:nopod b c d:podless", edits(unprepared), "unmanaged-members: PreparePod c-new, FindMember a, wait WaitingForPod"},
		{"a lost member is removed", 3, "a:nopod b c d:podless", nil, "unmanaged-members: RemoveMember a Lost"},
		{"a lost member stays if the others are no quorum without the unmanaged members", 3, "a:nopod b c d:podless e:podless", nil, "unmanaged-members: FindMember a, wait QuorumAtRisk"},
		{"a member whose peer URL was changed keeps its pod and its PVC", 3, "a:claim b:claim c:claim", edits(atAnotherURL("c")), "unmanaged-members: wait UnmanagedMember"},
		{"a member whose peer URL was changed gets its pod back", 3, "a:claim b:claim c:claim,nopod", edits(atAnotherURL("c")), "recreate-pods: CreatePod c[a b 3 c]"},
		{"a PVC of a removed member beside it gets none", 3, "a:claim b:claim c:claim", edits(atAnotherURL("c"), withPVC("d", true)), "unmanaged-members: wait UnmanagedMember"},
		{"the successor of a removed member joins", 3, "b c d:podless", nil, "unmanaged-members: AddLearner c-new, AdmitPod c-new[b c d c-new]"},
	})
}

// atAnotherURL changes the peer URL of a member, as etcdctl member update does.
func atAnotherURL(name string) func(*Observed) {
	return func(o *Observed) {
		m := memberByName(o.Etcd.Members, name)
		m.Unmanaged, m.OwnName, m.Name = true, name, hexID(m.ID)
	}
}

// TestPeerURLIsSetBack: the remedy for a member of the cluster at another peer URL does not remove it.
func TestPeerURLIsSetBack(t *testing.T) {
	for _, members := range []string{"a b c", "a:claim b:claim c:claim,nopod"} {
		o := observed(t, 3, members, atAnotherURL("c"))
		if text := removeUnmanaged(&o, listUnmanaged(o.Etcd.Members)[0]); strings.Contains(text, "remove") || !strings.Contains(text, "member update 3") {
			t.Errorf("%s: %s", members, text)
		}
	}
	b := statusOf(observed(t, 3, "a b c", atAnotherURL("c"))).BlockedBy
	if b == nil || strings.Contains(b.Unblock, "remove") || !strings.Contains(b.Unblock, "member update 3 --peer-urls=http://c.c.n.svc:2380") {
		t.Errorf("the controller waits for %+v", b)
	}
}

// TestCopyChangesNoMember: beside a member whose peer URL names another EtcdCluster no remedy changes the member list. The quorum
// of that cluster would commit the change.
func TestCopyChangesNoMember(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		url  string
		want string
	}{
		"another namespace":           {"http://c.c.prod.svc:2380", "EtcdCluster prod/c"},
		"another cluster":             {"https://c.other.n.svc.cluster.local:2380", "EtcdCluster n/other"},
		"another port of this member": {"http://c.c.n.svc:2382", "member update 3"},
		"no Service":                  {"http://10.0.0.1:2380", "member update 3"},
	} {
		o := observed(t, 3, "a b c d:unmanaged", atAnotherURL("c"))
		for i := range o.Etcd.Members {
			if m := &o.Etcd.Members[i]; m.OwnName == "c" {
				m.PeerURLs = []string{test.url}
			}
		}
		for _, m := range listUnmanaged(o.Etcd.Members) {
			text := removeUnmanaged(&o, m)
			if copies := strings.HasPrefix(test.want, "EtcdCluster"); copies && (strings.Contains(text, "member update") || strings.Contains(text, "member remove")) ||
				(copies || m.OwnName == "c") && !strings.Contains(text, test.want) {
				t.Errorf("%s, member %s: %s", name, m.Name, text)
			}
		}
	}
}

// TestUnmanagedMemberIsReported checks what a user learns of a member that etcdctl has added.
func TestUnmanagedMemberIsReported(t *testing.T) {
	o := observed(t, 3, "a b c")
	o.Etcd.Members = append(o.Etcd.Members, Member{
		ID: 0xd, Name: "d", Unmanaged: true, PeerURLs: []string{"http://\x1b[31m" + strings.Repeat("x", 1<<16)}, Health: Unknown, Reason: ReasonNotStarted,
	})
	s := Status(o, Decide(o))
	if s.Tolerance == nil || *s.Tolerance != 0 {
		t.Errorf("the fault tolerance is %v", s.Tolerance)
	}
	for condition, want := range map[v1beta2.ClusterConditionType]corev1.ConditionStatus{
		v1beta2.ClusterConditionReady: corev1.ConditionFalse, v1beta2.ClusterConditionDegraded: corev1.ConditionTrue, v1beta2.ClusterConditionAvailable: corev1.ConditionTrue,
	} {
		if got := find(s, condition); got.Status != want || condition != v1beta2.ClusterConditionAvailable && !strings.Contains(got.Message, "d") {
			t.Errorf("%s is %s: %s", condition, got.Status, got.Message)
		}
	}
	if b := s.BlockedBy; b == nil || !strings.Contains(b.Unblock, "member remove d") || len(b.Message) > 1<<10 || strings.Contains(b.Message, "\x1b") {
		t.Errorf("the controller waits for %+v", b)
	}
	if _, rejected := validation.FitClusterStatus(s, v1beta2.ClusterStatus{}); len(rejected) > 0 {
		t.Errorf("the API rejects the status: %v", rejected)
	}
}
