// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// advanced lets the last status say that a member was last seen to advance some time ago.
func advanced(member string, ago time.Duration, raftIndex int64, failures int32) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Status.Joining = &v1beta2.JoiningStatus{Member: member, RaftIndex: raftIndex, ProgressTime: metav1.NewTime(testNow.Add(-ago)), Failures: failures}
	}
}

// reads sets the raft index of the voters to 1000, and that of the learner c to index.
func reads(index uint64) func(*Observed) {
	return func(o *Observed) {
		for i := range o.Etcd.Members {
			o.Etcd.Members[i].RaftIndex = 1000
		}
		memberByName(o.Etcd.Members, "c").RaftIndex = index
	}
}

func hasDatabase(size int64) func(*Observed) {
	return func(o *Observed) { o.Etcd.Members[0].DBSize = size }
}

// TestLearnerThatDoesNotAdvance: a learner holds up every other change, so it has a bound. What may still
// copy a large database, or has caught up and waits for other members, stays.
func TestLearnerThatDoesNotAdvance(t *testing.T) {
	const replaced = "joining: RemoveMember c Stuck, DeletePod c"
	retained := func(o *Observed) {
		o.Cluster.Spec.Pod.PersistentVolumeClaimRetentionPolicy = &v1beta2.PersistentVolumeClaimRetentionPolicy{WhenScaled: v1beta2.PVCRetain}
	}
	checkDecisions(t, []decision{
		{"it never responds", 3, "a b c:learner,sick", edits(noEarlyPromotion, advanced("c", learnerPatience, 100, 0)), replaced},
		{"it has still time to respond", 3, "a b c:learner,sick", edits(noEarlyPromotion, advanced("c", learnerPatience-time.Second, 100, 0)), "joining: wait WaitingForMember"},
		{"it responds and reads nothing", 3, "a b c:learner", edits(reads(10), advanced("c", learnerPatience, 10, 0)), replaced},
		{"it has just read more", 3, "a b c:learner", edits(reads(11), advanced("c", learnerPatience, 10, 0)), "joining: wait LearnerCatchingUp"},
		{"it may still copy a large database", 3, "a b c:learner,sick", edits(noEarlyPromotion, hasDatabase(1<<30), advanced("c", learnerPatience, 100, 0)), "joining: wait WaitingForMember"},
		{"not for ever", 3, "a b c:learner,sick", edits(noEarlyPromotion, hasDatabase(1<<30), advanced("c", 2*learnerPatience, 100, 0)), replaced},
		{"the one after two that failed gets more time", 3, "a b c:learner,sick", edits(noEarlyPromotion, advanced("c", 2*learnerPatience, 100, 2)), "joining: wait WaitingForMember"},
		{"the one after two that failed is replaced after four times the time", 3, "a b c:learner,sick", edits(noEarlyPromotion, advanced("c", 4*learnerPatience, 100, 2)), replaced},
		{"another member is not judged by its time", 3, "a b c:learner,sick", edits(noEarlyPromotion, advanced("d", time.Hour, 0, 0)), "joining: wait WaitingForMember"},
		{"it has caught up and is promoted", 3, "a b c:learner", edits(reads(999), advanced("c", time.Hour, 999, 0)), "joining: PromoteMember c"},
		{"it has caught up, and its disk hangs while the others need its vote", 3, "a b:sick c:learner", edits(reads(999), advanced("c", learnerPatience, 999, 0)), replaced},
		{"it has caught up, and the others need its vote", 3, "a b:sick c:learner", edits(reads(999), advanced("c", learnerPatience-time.Second, 999, 0)), "joining: PromoteMember c"},
		{"its PVC is part of a copy, and no disk of a member", 3, "a:claim b:claim c:learner,sick,claim", edits(noEarlyPromotion, retained, advanced("c", learnerPatience, 100, 0)), replaced + ", DeletePVC c"},
		{"voters are never removed for that", 3, "a b c:sick", edits(advanced("c", time.Hour, 0, 0)), "steady"},
	})
}

// noEarlyPromotion keeps a learner that does not respond from being promoted: it has ended before.
func noEarlyPromotion(o *Observed) { podByName(o.Pods, "c").RestartCount = 1 }

func TestJoiningStatus(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		observed Observed
		member   string
		ago      time.Duration
		failures int32
	}{
		"the first look":                        {observed(t, 3, "a b c:learner"), "c", 0, 0},
		"nothing new":                           {observed(t, 3, "a b c:learner", advanced("c", time.Hour, 100, 1)), "c", time.Hour, 1},
		"it has read more":                      {observed(t, 3, "a b c:learner", reads(6), advanced("c", time.Hour, 5, 1)), "c", 0, 1},
		"next learner after a removed learner":  {observed(t, 3, "a b c:learner", advanced("d", time.Hour, 5, 1)), "c", 0, 2},
		"none after it was removed":             {observed(t, 3, "a b", advanced("d", time.Hour, 5, 1)), "", time.Hour, 2},
		"a removed one counts once":             {observed(t, 3, "a b", advanced("", time.Hour, 0, 2)), "", time.Hour, 2},
		"next learner after a promoted learner": {observed(t, 4, "a b c:learner", advanced("b", time.Hour, 5, 1)), "c", 0, 0},
		"time without a quorum does not count":  {observed(t, 3, "a b:down c:learner,down", noQuorum, advanced("c", time.Hour, 5, 1)), "c", 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := joiningStatus(&test.observed)
			if j == nil || j.Member != test.member || j.Failures != test.failures || !j.ProgressTime.Time.Equal(testNow.Add(-test.ago).Truncate(time.Second)) {
				t.Errorf("joining %+v", j)
			}
		})
	}
	o := observed(t, 3, "a b c", advanced("c", time.Hour, 5, 3))
	if j := joiningStatus(&o); j != nil {
		t.Errorf("all have joined: %+v", j)
	}
}

// TestLostLearnersDidNotFail: only a learner that did not catch up counts. One whose pod was evicted with its data, or
// that is not wanted any more, does not.
func TestLostLearnersDidNotFail(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		learner string
		edit    func(*Observed)
		counts  int32
	}{
		"its pod was evicted":                 {"c:learner,nopod", func(*Observed) {}, 1},
		"it is not wanted any more":           {"c:learner", func(o *Observed) { o.Cluster.Spec.Replicas = ptr.To[int32](2) }, 1},
		"it ends again and again":             {"c:learner,down", func(o *Observed) { podByName(o.Pods, "c").RestartCount = crashLoopAfter }, 2},
		"it was not seen to advance for long": {"c:learner,sick", func(o *Observed) { noEarlyPromotion(o); advanced("c", time.Hour, 100, 1)(o) }, 2},
	} {
		removing := observed(t, 3, "a b "+test.learner, advanced("c", time.Minute, 5, 1), test.edit)
		plan := Decide(removing)
		if !slices.ContainsFunc(plan.Actions, func(a Action) bool { _, is := a.(RemoveMember); return is }) {
			t.Fatalf("%s: the plan removes no member: %+v", name, plan)
		}
		removed := observed(t, 3, "a b", func(o *Observed) { o.Cluster.Status.Joining = Status(removing, plan).Joining })
		if j := joiningStatus(&removed); j == nil || j.Failures != test.counts {
			t.Errorf("%s: joining %+v, want %d failures", name, j, test.counts)
		}
	}
}

// TestMembersThatDoNotJoinAreReported: a cluster whose members fail to join one after the other is Stalled.
func TestMembersThatDoNotJoinAreReported(t *testing.T) {
	t.Parallel()
	for failures, stalled := range map[int32]bool{1: false, 2: true} {
		o := observed(t, 3, "a b c:learner,sick", noEarlyPromotion, advanced("c", time.Minute, 100, failures))
		status := Status(o, Decide(o))
		found := false
		for _, c := range status.Conditions {
			if c.Type == v1beta2.ClusterConditionStalled && c.Reason == string(ReasonMembersDoNotJoin) && strings.Contains(c.Message, "Check the network") {
				found = true
			}
		}
		if found != stalled {
			t.Errorf("%d failures: stalled %t, conditions %+v", failures, found, status.Conditions)
		}
	}
}

// TestImageThatCannotBePulled: the status names the image and the command that leads back.
func TestImageThatCannotBePulled(t *testing.T) {
	t.Parallel()
	for _, why := range []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName"} {
		o := observed(t, 3, "a b", waitingPod("c", func(p *Pod) { p.Running, p.Waiting = false, why+": quay.io/etcd:v3.99.0" }), waitsSince(string(ReasonImageNotPulled), time.Minute))
		status := Status(o, Decide(o))
		b := status.BlockedBy
		if b == nil || b.Reason != string(ReasonImageNotPulled) || !strings.Contains(b.Message, "image quay.io/etcd:v3.99.0 cannot be pulled") ||
			!strings.Contains(b.Unblock, "kubectl patch etcdcluster "+o.Cluster.Name) || !strings.Contains(b.Unblock, "spec.pod.imagePullSecrets") {
			t.Errorf("%s: blocked by %+v", why, b)
		}
		if c := reportedCondition(status.Conditions, v1beta2.ClusterConditionStalled); c.Reason != string(ReasonImageNotPulled) {
			t.Errorf("%s: Stalled says %+v", why, c)
		}
	}
}

// TestStalledWaitHasARemedy: once Stalled, no wait says that no action is needed.
func TestStalledWaitHasARemedy(t *testing.T) {
	t.Parallel()
	o := observed(t, 3, "a b c:learner,sick", noEarlyPromotion, waitsSince(string(ReasonWaitingForMember), time.Hour), advanced("c", time.Minute, 0, 0))
	if b := Status(o, Decide(o)).BlockedBy; b == nil || strings.Contains(b.Unblock, "No action needed") || !strings.Contains(b.Unblock, "kubectl logs") {
		t.Errorf("blocked by %+v", b)
	}
}

// TestMemberThatStaysUnhealthyIsReported: no rule waits for a voter whose container ends again and again.
func TestMemberThatStaysUnhealthyIsReported(t *testing.T) {
	t.Parallel()
	for since, stalled := range map[time.Duration]bool{time.Minute: false, time.Hour: true} {
		o := observed(t, 3, "a b c:sick", func(o *Observed) {
			o.Cluster.Status.Conditions = append(o.Cluster.Status.Conditions, v1beta2.ClusterCondition{
				Type: v1beta2.ClusterConditionDegraded, Status: corev1.ConditionTrue, LastTransitionTime: testNow.Add(-since).Format(time.RFC3339),
			})
		})
		c := reportedCondition(Status(o, Decide(o)).Conditions, v1beta2.ClusterConditionStalled)
		if c.Status == corev1.ConditionTrue != stalled || stalled && !strings.Contains(c.Message, "kubectl etcd replace") {
			t.Errorf("after %v: %+v", since, c)
		}
	}
}
