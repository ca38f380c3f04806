// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
)

// TestDrain: clients are led away from a member before it restarts or is defragmented, and
// back to it once its container was replaced.
func TestDrain(t *testing.T) {
	const next = "3.7.0"
	checkDecisions(t, []decision{
		{"out of the Service first", 3, "a:routed b:routed c:routed", edits(wants(next)), "rollout: LabelPod b leaving"},
		{"a restart waits until the Service does not lead to the member", 3, "a:routed b:routed,leaving c:routed", edits(wants(next)), "rollout: wait WaitingForService"},
		{"a member that is out of the Service restarts", 3, "a:routed b:leaving c:routed", edits(wants(next)), "rollout: UpgradePod b " + next},
		{"it stays out while it restarts", 3, "a:routed b:leaving,podv=3.7.0 c:routed", edits(wants(next)), "rollout: wait WaitingForMember"},
		{"a member stays out of the Service while its former container seems to run", 3, "a:routed b:leaving,v=3.7.0,podv=3.7.0,restarting c:routed", edits(wants(next)), "rollout: wait WaitingForMember"},
		{"it comes back with its container", 3, "a:routed b:leaving,v=3.7.0,podv=3.7.0,notready c:routed", edits(wants(next)), "rollout: LabelPod b voter, wait WaitingForReady"},
		{"the next one waits until clients reach it", 3, "a:routed b:v=3.7.0,podv=3.7.0 c:routed", edits(wants(next)), "rollout: wait WaitingForService"},
		{"the next member is taken out of the Service when clients reach the one before", 3, "a:routed b:routed,v=3.7.0,podv=3.7.0 c:routed", edits(wants(next)), "rollout: LabelPod c leaving"},
		{"the leader is out of the Service before it hands over", 3, "a:routed b:routed,v=3.7.0,podv=3.7.0 c:routed,v=3.7.0,podv=3.7.0", edits(wants(next)), "rollout: LabelPod a leaving"},
		{"the leader hands over when it is out of the Service", 3, "a:routed,leaving b:routed,v=3.7.0,podv=3.7.0 c:routed,v=3.7.0,podv=3.7.0", edits(wants(next)), "rollout: MoveLeader a>b"},
		{"it stays out while the leader is unclear", 4, "a:routed b:routed c:routed d:leaving", edits(wants(next), disagree), "rollout: wait NoLeader"},
		{"a change that was taken back brings it back", 3, "a:routed b:leaving c:routed", nil, "steady: LabelPod b voter"},
		{"another member that fails meanwhile brings it back", 3, "a:routed b:leaving c:sick", edits(wants(next)), "rollout: LabelPod b voter, UpgradePod c " + next},
		{"one that does not serve is not drained", 3, "a:routed b:routed c:sick,routed", edits(wants(next)), "rollout: UpgradePod c " + next},
		{"on a volume, too", 3, "a:claim,stale,routed b:claim,stale,routed c:claim,stale,routed", nil, "rollout: LabelPod b leaving"},
		{"a pod with a volume is made again when it is out of the Service", 3, "a:claim,stale,routed b:claim,stale,leaving c:claim,stale,routed", nil, "rollout: RecreatePod b " + testVersion},
		{"of two the other one serves reads", 2, "a:routed b:routed", edits(wants(next)), "rollout: LabelPod b leaving"},
		{"the only one stays in the Service until it stops", 1, "a:routed", edits(wants(next)), "rollout: UpgradePod a " + next + " outage"},
		{"the last member that clients reach stays in the Service until it stops", 3, "a b:routed c", edits(wants(next)), "rollout: UpgradePod b " + next},

		{"a defragmentation: out of the Service first", 3, "a:routed b:routed c:routed", edits(askedFor()), "operation: LabelPod b leaving"},
		{"a defragmentation waits until the Service does not lead to the member", 3, "a:routed b:routed,leaving c:routed", edits(askedFor()), "operation: wait WaitingForService"},
		{"a member that is out of the Service is defragmented", 3, "a:routed b:leaving c:routed", edits(askedFor(), result("b", isRunning)), "operation: Defragment b op/b"},
		{"it stays out", 3, "a:routed b:leaving c:routed", edits(askedFor(), result("b", isRunning), task("op/b", false, "")), "operation"},
		{"it comes back", 3, "a:routed b:leaving c:routed", edits(askedFor("b"), result("b", isRunning), task("op/b", true, "")), "operation: LabelPod b voter"},
		{"a single one stays", 1, "a:routed", edits(askedFor(), result("a", isRunning)), "operation: Defragment a op/a"},
	})
}

// TestDrainSaysWhatItWaitsFor: EndpointSlices that no controller updates hold a restart
// up, and the status says so.
func TestDrainSaysWhatItWaitsFor(t *testing.T) {
	o := observed(t, 3, "a:routed b:routed,leaving c:routed", wants("3.7.0"))
	plan := Decide(o)
	status := Status(o, plan)
	if b := status.BlockedBy; b == nil || b.Reason != "WaitingForService" || !strings.Contains(b.Message, "member b") || !strings.Contains(b.Unblock, "EndpointSlices") {
		t.Errorf("the status says %+v", b)
	}
	if plan.RequeueAfter == 0 {
		t.Error("it does not look again")
	}
}
