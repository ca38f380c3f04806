// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestRuleJoining(t *testing.T) {
	checkDecisions(t, []decision{
		{"a learner that has not started", 3, "a b c:learner,unstarted", nil, "joining: wait WaitingForMember"},
		{"a learner that is about to restart", 3, "a b c:learner,podv=3.6.2", nil, "joining: wait WaitingForMember"},
		{"a learner next to one that is about to restart", 5, "a b:podv=3.6.2 c:sick d:learner", nil, "joining: wait QuorumAtRisk"},
		{"a learner that serves", 3, "a b c:learner", nil, "joining: PromoteMember c"},
		{"a learner that waits for an image that is not wanted any more", 3, "a b c:learner,unstarted,outdated", nil,
			"joining: UpgradePod c " + testVersion + " idle"},
		{"a learner that waits for the image of the others", 3, "a b c:learner,unstarted,outdated", edits(wants("3.8.0")),
			"joining: wait WaitingForMember"},
		{"a learner that does not serve yet, and whose vote is not needed", 3, "a b c:learner,sick", nil, "joining: PromoteMember c"},
		{"a learner that cannot be reached, and whose vote is not needed", 3, "a b c:learner,unknown", nil, "joining: PromoteMember c"},
		{"a learner that does not serve yet, and whose vote is needed", 3, "a b:sick c:learner,sick", nil, "joining: wait WaitingForMember"},
		{"a learner that does not run", 3, "a b c:learner,down", nil, "joining: wait WaitingForMember"},
		{"a learner that does not run for a while", 3, "a b c:learner,down,ends=4", nil, "joining: wait WaitingForMember"},
		{"a learner that ends again and again", 3, "a b c:learner,down,ends=5", nil, "joining: RemoveMember c CrashLooping, DeletePod c"},
		{"with its volume, too", 3, "a:claim b:claim c:learner,down,ends=9,claim", nil, "joining: RemoveMember c CrashLooping, DeletePod c, DeletePVC c"},
		{"a learner that ended often and serves", 3, "a b c:learner,ends=9", nil, "joining: PromoteMember c"},
		{"a learner that ended and has started again, and whose vote is not needed", 3, "a b c:learner,sick,ends=1", nil, "joining: wait WaitingForMember"},
		{"a voter that was removed and added again by hand, on the data of its old ID", 3, "a:claim b:claim c:unstarted,down,ends=5,claim", nil,
			"joining: RemoveMember c CrashLooping, DeletePod c, ReleasePVC c"},
		{"the same, not for long", 3, "a:claim b:claim c:unstarted,down,ends=4,claim", nil, "joining: wait WaitingForMember"},
		{"the same, while it runs", 3, "a:claim b:claim c:unstarted,ends=9,claim", nil, "joining: wait WaitingForMember"},
		{"the same, and the others are no quorum without it", 3, "a b:sick c:unstarted,down,ends=9", nil, "joining: wait QuorumAtRisk"},
		{"in an etcd without learners each voter begins so", 3, "a b c:unstarted,down,ends=9", edits(withoutLearners), "joining: wait WaitingForMember"},
		{"a voter that ends again and again", 3, "a b c:down,ends=9", nil, "steady"},
		{"a learner that was never given a pod", 3, "a b c:learner,unstarted,nopod", nil, "joining: RemoveMember c Lost"},
		{"a learner that lost its data", 3, "a b c:learner,nopod", nil, "joining: RemoveMember c Lost"},
		{"a learner whose pod goes with its data", 3, "a b c:learner,terminating", nil, "joining: RemoveMember c Lost"},
		{"a learner whose pod goes and comes back", 3, "a:claim b:claim c:learner,terminating,claim", nil, "joining: wait WaitingForPod"},
		{"a surplus learner", 2, "a b c:learner", nil, "joining: RemoveMember c Surplus, DeletePod c"},
		{"with its volume", 2, "a:claim b:claim c:learner,claim", nil, "joining: RemoveMember c Surplus, DeletePod c, DeletePVC c"},
		{"a promotion that would cost the quorum", 5, "a b:sick c:sick d:learner", nil, "joining: wait QuorumAtRisk"},
		{"a promotion that waits for members that perhaps are only hidden", 5, "a b:nopod c:nopod d:learner", nil,
			"joining: FindMember b, FindMember c, wait QuorumAtRisk"},
		{"a promotion that pays for itself", 3, "a b:sick c:learner", nil, "joining: PromoteMember c"},
		{"a voter that has not started", 3, "a b c:unstarted", nil, "joining: wait WaitingForMember"},
		{"a voter that was never given a pod", 3, "a b c:unstarted,nopod", nil, "joining: RemoveMember c Lost"},
		{"a learner that was started with another list", 3, "a b c:learner,unstarted", edits(started("c", "a", "c")),
			"joining: RemoveMember c PeersDiffer, DeletePod c"},
		{"the same, on a volume", 3, "a:claim b:claim c:learner,unstarted,claim", edits(started("c", "a", "c")),
			"joining: RemoveMember c PeersDiffer, DeletePod c, DeletePVC c"},
		{"a voter that was started with another list", 3, "a b c:unstarted", edits(started("c", "a", "c")),
			"joining: RemoveMember c PeersDiffer, DeletePod c"},
		{"a voter that starts only on its data joins nothing", 3, "a b c:unstarted", edits(started("c", "c"), func(o *Observed) { podByName(o.Pods, "c").MayFill = false }),
			"joining: wait WaitingForMember"},
		{"in an etcd without learners it has none", 3, "a b c:unstarted", edits(withoutLearners, started("c", "c"), func(o *Observed) { podByName(o.Pods, "c").MayFill = false }),
			"joining: RemoveMember c PeersDiffer, DeletePod c"},
		{"the list in another order is the same list", 3, "a b c:learner,unstarted", edits(started("c", "c", "b", "a")), "joining: wait WaitingForMember"},
		{"a member that has joined may have any list", 3, "a b c:learner", edits(started("c", "a", "c")), "joining: PromoteMember c"},
		{"one change at a time: a lost voter waits for the learner", 3, "a b:nopod c d:learner,unstarted", nil, "joining: RemoveMember d Surplus, DeletePod d"},
		{"one change at a time: growing waits for the learner", 5, "a b c d:learner,unstarted", nil, "joining: wait WaitingForMember"},
	})
}

// started says with which peers the pod of a member was made.
func started(name string, peers ...string) func(*Observed) {
	return func(o *Observed) {
		pod := podByName(o.Pods, name)
		pod.Peers, pod.MayFill = peers, true
	}
}

// TestProgressOfALearnerChangesTenTimes: the status says how far a learner is, without a write
// for each entry of the log. What takes long is looked at less often.
func TestProgressOfALearnerChangesTenTimes(t *testing.T) {
	messages := map[string]bool{}
	for index := range 90 {
		plan := Decide(observed(t, 3, fmt.Sprintf("a b c:learner,index=%d", index)))
		if plan.Wait == nil || plan.Wait.Reason != ReasonLearnerCatchingUp || plan.RequeueAfter != recheckCatchUp {
			t.Fatalf("at entry %d: %s", index, describe(plan))
		}
		messages[plan.Wait.Message] = true
	}
	if len(messages) != 9 || !messages["member c has read about 40 % of the log"] {
		t.Errorf("messages %v", messages)
	}
	o := observed(t, 3, "a b c:learner,index=40")
	o.Cluster.Status.BlockedBy = &v1beta2.BlockedBy{Reason: string(ReasonLearnerCatchingUp), Since: metav1.NewTime(o.Now.Add(-2 * time.Minute))}
	if after := Decide(o).RequeueAfter; after != recheckWaiting {
		t.Errorf("after two minutes it is looked at every %v", after)
	}
}

// TestPromotionOfUnreachableLearnerSlowsDown: etcd may reject the promotion for as long as the learner is
// out of reach. A request every half second for that long has no use.
func TestPromotionOfUnreachableLearnerSlowsDown(t *testing.T) {
	for age, want := range map[time.Duration]time.Duration{time.Second: recheckCatchUp, 10 * time.Minute: recheckWaiting} {
		o := observed(t, 3, "a b c:learner,unknown")
		podByName(o.Pods, "c").Made = o.Now.Add(-age)
		plan := Decide(o)
		if plan.RequeueAfter != want || describe(plan) != "joining: PromoteMember c" {
			t.Errorf("with a pod of %v: %s again after %v, want %v", age, describe(plan), plan.RequeueAfter, want)
		}
	}
}
