// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestRuleHibernate(t *testing.T) {
	checkDecisions(t, []decision{
		{"pods with volumes go", 0, "a:claim b:claim c:claim", nil, "hibernate: DeletePod a, DeletePod b, DeletePod c"},
		{"pods that go already do not go twice", 0, "a:claim,terminating b:claim", nil, "hibernate: DeletePod b"},
		{"a pod that its node does not end is named", 0, "a:claim,overdue", nil, "hibernate: wait WaitingForPod"},
		{"a pod that has ended and stays because of its volume does not serve", 0, "a:claim,overdue,finished", nil, "hibernate"},
		{"data without a volume is never touched", 0, "a b:claim", nil, "hibernate: DeletePod b"},
		{"a volume that goes with its pod is never touched", 0, "a:claim b:claim c:deadclaim", nil, "hibernate: EnsurePodDisruptionBudget 2, DeletePod a, DeletePod b, wait VolumesBeingDeleted"},
		{"a pod that takes such a volume along goes already", 0, "a:deadclaim,overdue b:claim,nopod", edits(noQuorum), "hibernate: wait WaitingForPod"},
		{"it needs no quorum", 0, "a:claim b:claim,down c:claim,nopod", edits(noQuorum), "hibernate: DeletePod a, DeletePod b"},
		{"asleep", 0, "a:claim,nopod b:claim,nopod", edits(noQuorum), "hibernate"},
		{"pods that are not owned stay", 0, "a:claim,theirs", edits(noQuorum), "hibernate"},
		{"orphans wait", 0, "a:claim,nopod", edits(noQuorum, withPVC("gone", true)), "hibernate"},
	})
}

// TestHibernationLooksAgain: no event comes when the end of a pod is overdue.
func TestHibernationLooksAgain(t *testing.T) {
	for state, again := range map[string]time.Duration{"a:claim,terminating": recheckSteady, "a:claim,overdue": recheckSteady, "a:claim,nopod": 0} {
		o := observed(t, 0, state)
		if plan, _ := ruleHibernate(&o); plan.RequeueAfter != again {
			t.Errorf("%s: looks again after %v, want %v", state, plan.RequeueAfter, again)
		}
	}
}

// TestHibernationNamesDoomedPVCs: a cluster whose PVCs are being deleted does not say that its volumes are kept.
func TestHibernationNamesDoomedPVCs(t *testing.T) {
	o := observed(t, 0, "a:deadclaim b:claim,nopod c:deadclaim", noQuorum)
	status := Status(o, Decide(o))
	if b := status.BlockedBy; b == nil || b.Reason != string(ReasonVolumesBeingDeleted) || !strings.Contains(b.Message, "a, c") || !strings.Contains(b.Unblock, "snapshot save") {
		t.Errorf("it is blocked by %+v", b)
	}
	if c := find(status, v1beta2.ClusterConditionAvailable); c == nil || strings.Contains(c.Message, "kept") {
		t.Errorf("the condition is %+v", c)
	}
}
