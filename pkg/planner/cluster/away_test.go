// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// memberLoss sets what the spec says about members that are away.
func memberLoss(mode v1beta2.RecoveryMode, seconds int64) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Spec.Recovery = &v1beta2.RecoveryPolicy{MemberLoss: mode, MemberLossTimeoutSeconds: ptr.To(seconds)}
	}
}

func TestMembersThatAreAway(t *testing.T) {
	const learner = "scale-up: AddLearner c-new, AdmitPod c-new[a b c c-new]"
	checkDecisions(t, []decision{
		{"a new member joins before a lost one goes", 3, "a b c:away=5", nil, learner},
		{"with volumes", 3, "a:claim b:claim c:away=5,claim", nil, learner},
		{"a pod that stays Terminating", 3, "a:claim b:claim c:terminating,away=5,claim", nil, learner},
		{"the pod of the new member must wait for it", 3, "a b c:away=5", edits(unprepared), "scale-up: PreparePod c-new, wait WaitingForPod"},
		{"the lost one goes when the new one votes", 3, "a b c:away=5 d", nil, "scale-down: RemoveMember c Away, DeletePod c"},
		{"its volume goes with it", 3, "a:claim b:claim c:away=5,claim d:claim", nil, "scale-down: RemoveMember c Away, DeletePod c, DeletePVC c"},
		{"one that came back stays, and the new one goes", 3, "a b c d", nil, "scale-down: LabelPod d leaving"},
		{"not before its time", 3, "a b c:away=4", nil, "steady"},
		{"a member is not replaced before the time that the spec says", 3, "a b c:away=9", edits(memberLoss(v1beta2.RecoveryAutomatic, 600)), "steady"},
		{"a shorter time", 3, "a b c:away=2", edits(memberLoss(v1beta2.RecoveryAutomatic, 60)), learner},
		{"not if the spec leaves it to a person", 3, "a b c:away=60", edits(memberLoss(v1beta2.RecoveryManual, 60)), "steady"},
		{"two of five, one after the other", 5, "a b c d:away=5 e:away=5", nil, "scale-up: AddLearner c-new, AdmitPod c-new[a b c d e c-new]"},
		{"of two members that are away one is removed when a new member serves", 5, "a b c d:away=5 e:away=5 f", nil, "scale-down: RemoveMember e Away, DeletePod e"},
		{"not without a quorum that serves", 5, "a b c:sick d:away=5 e:away=5", nil, "scale-up: wait QuorumAtRisk"},
		{"a lost leader that others still follow keeps its place", 3, "a:leads,away=5 b c d", nil, "scale-down: wait WaitingForMember"},
		{"a joining member goes at once", 3, "a b c:learner,away=5", nil, "joining: RemoveMember c Away, DeletePod c"},
		{"a joining member has no vote, so it goes also if the spec leaves members to a person", 3, "a b c:learner,away=5", edits(memberLoss(v1beta2.RecoveryManual, 300)), "joining: RemoveMember c Away, DeletePod c"},
		{"where learners are unknown the lost one goes first", 3, "a:v=3.3.9,podv=3.3.9 b:v=3.3.9,podv=3.3.9 c:podv=3.3.9,away=5", edits(wants("3.3.9")),
			"replace: RemoveMember c Away, DeletePod c"},
		{"where learners are unknown the lost member stays until the pod of the new one waits", 3, "a:v=3.3.9,podv=3.3.9 b:v=3.3.9,podv=3.3.9 c:podv=3.3.9,away=5", edits(wants("3.3.9"), unprepared),
			"replace: PreparePod c-new, wait WaitingForPod"},
	})
}

func TestDegradedSaysWhatBecomesOfAMemberThatIsAway(t *testing.T) {
	for mode, want := range map[v1beta2.RecoveryMode]string{
		v1beta2.RecoveryAutomatic: "member c is replaced: its node is not ready",
		v1beta2.RecoveryManual:    "member c is not replaced, because spec.recovery.memberLoss is Manual: its node is not ready",
	} {
		o := observed(t, 3, "a b c:away=5", memberLoss(mode, 300))
		c := degraded(&o, Plan{})
		if c.Status != corev1.ConditionTrue || !strings.Contains(c.Message, want) {
			t.Errorf("%s: %s %q, not %q", mode, c.Status, c.Message, want)
		}
	}
}
