// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/waits"
)

const (
	// learnerPatience is how long a learner may not be seen to advance before another member replaces it,
	// beside the time that a copy of the database takes. No other member joins before that.
	learnerPatience = 10 * time.Minute
	// maxDoublings bounds how often that time doubles after learners in a row that did not advance: the
	// database may only need longer than was thought.
	maxDoublings = 3
	// tooManyFailures is after how many learners in a row the cluster is Stalled.
	tooManyFailures = 2
	// progressPause is how long the status keeps the progress of a learner that advances.
	progressPause = 30 * time.Second
)

// joiningStatus returns how the joining member has advanced, from the last status and what is observed now.
// While no member list can be read no member can advance, so that time does not count.
func joiningStatus(o *Observed) *v1beta2.JoiningStatus {
	before := o.Cluster.Status.Joining.DeepCopy()
	if !o.Etcd.Linearizable {
		if before != nil && before.Member != "" && o.Now.Sub(before.ProgressTime.Time) >= progressPause {
			before.ProgressTime = metav1.NewTime(o.Now.Truncate(time.Second))
		}
		return before
	}
	failures := int32(0)
	if before != nil {
		failures = before.Failures
		switch last := memberByName(o.Etcd.Members, before.Member); {
		case before.Member != "" && last == nil:
			failures++
		case last != nil && last.Started && !last.Learner:
			failures = 0
		}
	}
	m := findJoiningMember(o.Etcd.Members)
	switch {
	case m != nil && (before == nil || before.Member != m.Name):
		return &v1beta2.JoiningStatus{Member: m.Name, RaftIndex: signed(m.RaftIndex), ProgressTime: metav1.NewTime(o.Now.Truncate(time.Second)), Failures: failures}
	case m != nil:
		if signed(m.RaftIndex) > before.RaftIndex && o.Now.Sub(before.ProgressTime.Time) >= progressPause {
			before.RaftIndex, before.ProgressTime = signed(m.RaftIndex), metav1.NewTime(o.Now.Truncate(time.Second))
		}
		return before
	case failures > 0 && len(listOwnVoters(o.Etcd.Members)) < desiredSize(o.Cluster)+surge(o):
		return &v1beta2.JoiningStatus{ProgressTime: before.ProgressTime, Failures: failures}
	default:
		return nil
	}
}

// joiningAfter returns what the status says of the joining member once a plan is carried out. A member that is removed
// because its pod was lost with its data, as by an eviction, has not failed to catch up. Nor has one that is not
// wanted any more. The status no longer names such a member.
func joiningAfter(o *Observed, plan Plan) *v1beta2.JoiningStatus {
	j := joiningStatus(o)
	if j == nil || !slices.ContainsFunc(plan.Actions, func(a Action) bool {
		r, is := a.(RemoveMember)
		return is && r.Name == j.Member && (r.Reason == RemoveLost || r.Reason == RemoveSurplus)
	}) {
		return j
	}
	if j.Failures == 0 {
		return nil
	}
	return &v1beta2.JoiningStatus{ProgressTime: j.ProgressTime, Failures: j.Failures}
}

// isStuck is true for a learner that has not advanced for so long that another member must replace it. A
// learner that has caught up and only waits for the others is none. One whose vote they need is: each attempt to
// promote it commits writes, which it would read unless its disk hangs.
func isStuck(o *Observed, m *Member) bool {
	j := o.Cluster.Status.Joining // only what a status has said: it names this very member
	if !m.Learner || j == nil || j.Member != m.Name || (hasCaughtUp(o, m) && !needsVote(o)) {
		return false
	}
	return o.Now.Sub(joiningStatus(o).ProgressTime.Time) >= patienceFor(largestDatabase(o.Etcd.Members), j.Failures)
}

// patienceFor is how long a learner may not be seen to advance after so many that did not.
func patienceFor(size int64, failures int32) time.Duration {
	return (learnerPatience + waits.CopyTime(size)) << min(failures, maxDoublings)
}

// hasCaughtUp is true for a learner that responds and has read nearly all of the log.
func hasCaughtUp(o *Observed, m *Member) bool {
	return m.Health == Healthy && m.RaftIndex >= newestRaftIndex(o.Etcd.Members)/10*9
}

// largestDatabase is the size in bytes of the largest database of a member.
func largestDatabase(members []Member) int64 {
	var size int64
	for i := range members {
		size = max(size, members[i].DBSize)
	}
	return size
}

// joinsFail says that members in a row did not join; nil if that is not so.
func joinsFail(o *Observed) *standing {
	j := joiningStatus(o)
	if j == nil || j.Failures < tooManyFailures {
		return nil
	}
	return &standing{stalled: true, reason: ReasonMembersDoNotJoin, message: fmt.Sprintf(
		"%d members in a row were removed because they did not catch up with the others; the controller goes on with another member. "+
			"Check the network between the nodes, and the logs of the member that joins", j.Failures)}
}
