// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// ruleJoining finishes the membership change that is under way: a learner is
// promoted, or removed when it is not wanted or has lost what it had.
func ruleJoining(o *Observed) (Plan, bool) {
	m := findJoiningMember(o.Etcd.Members)
	if m == nil {
		return Plan{}, false
	}
	pod := podByName(o.Pods, m.Name)
	// It waits for an image that is not wanted any more.
	unwanted := !isGone(pod) && !pod.Running && (pod.Outdated || putsBack(o, pod, m)) && upgradePathOf(o).joinVersion() == ""
	switch {
	case m.Learner && len(listOwnVoters(o.Etcd.Members)) >= desiredSize(o.Cluster)+surge(o):
		return removeMember(o, m, RemoveSurplus), true
	case !m.Started && isAdmissible(o, m):
		// The controller stopped before it admitted the pod.
		return Plan{Actions: []Action{admit(preparedPodByName(o.Prepared, m.Name), listPeerNames(o.Etcd.Members, o.PVCs))}, RequeueAfter: recheckWaiting}, true
	case mustBeReplaced(o.Cluster, o.Now, o.Pods, m), m.Learner && m.Health != Healthy && isOverdue(o.Cluster, o.Now, pod):
		// A learner has no vote, and what it holds is a copy: it needs no permission.
		return removeUnstarted(o, m, RemoveAway), true
	case isStuck(o, m):
		return removeMember(o, m, RemoveStuck), true
	case isGone(pod) && pvcByName(o.PVCs, m.Name) == nil:
		// The pod is lost with its disk. A member must never start again with less than
		// it had: this member is removed and a new member joins.
		return removeUnstarted(o, m, RemoveLost), true
	case isGone(pod):
		return wait(recheckWaiting, ReasonWaitingForPod, "pod "+m.Name+" is being deleted and is created again with its PVC", noActionNeeded), true
	case m.Learner && m.Started && !isReportedStarted(o.Cluster.Status.MemberStatuses, m):
		return Plan{RequeueAfter: recheckNow}, true
	case m.Learner && m.Health == Healthy:
		return promote(o, m), true
	case m.Learner && declarationOf(o).isStale(pod) && responseOf(m) == diagnosis.NoResponse && !isFresh(o.Now, pod):
		// The declaration from before may have made it unreachable. It has no vote, and what it holds is a copy.
		return recreateJoining(o, m, pod.Version), true
	case canPromoteEarly(quorumOf(o), m):
		// A learner that joined by a snapshot of the database may serve clients only
		// seconds after it has caught up. Its vote is not needed for the quorum that it
		// joins, and etcd rejects the promotion if it has not caught up, so there is nothing
		// to wait for.
		return Plan{Actions: []Action{PromoteMember{ID: m.ID, Name: m.Name}}, RequeueAfter: promotionPace(o.Now, pod)}, true
	case declarationOf(o).isStale(pod) && (!m.Started || !pod.Running):
		return recreateJoining(o, m, pod.Version), true
	case unwanted && (pod.NeedsNewPod || pod.FromPolicy):
		return recreateJoining(o, m, o.Cluster.Spec.Version), true
	case unwanted:
		return Plan{Actions: []Action{
			UpgradePod{Name: pod.Name, UID: pod.UID, Version: o.Cluster.Spec.Version, Mode: RestartIdle},
		}, RequeueAfter: recheckWaiting}, true
	case !pod.Running && pod.RestartCount >= crashLoopAfter && (m.Learner || isUnstartedVoter(o, m)):
		// What it has may be damaged, and no other member may join beside it. A learner has no vote,
		// and what it holds is a copy.
		return removeUnstarted(o, m, RemoveCrashLooping), true
	case !m.Started && !keepsData(o, m, pod) && peersDiffer(o.Etcd.Members, pod):
		// etcd does not start a member whose configured peers differ from the member list,
		// so this member will never join.
		return removeUnstarted(o, m, RemovePeersDiffer), true
	default:
		plan := waitForPod(o.Cluster, pod, recheckCatchUp, Wait{ReasonWaitingForMember, "member " + m.Name + " joins and does not serve yet", noActionNeeded})
		if made := parse(pod.Version); made != nil && pod.RestartCount > 0 && isSplit(o) {
			plan.Wait.Remedy += remedyOfNewFlag(made.Minor())
		}
		return plan, true
	}
}

// keepsData is true for a voter that was promoted before the others have heard its name, and whose pod starts only on its
// data: it joins nothing. In an etcd without learners a voter begins without data.
func keepsData(o *Observed, m *Member, pod *Pod) bool {
	return !m.Learner && !pod.MayFill && upgradePathOf(o).knowsLearners()
}

// isUnstartedVoter is true for a voter that has not started, in an etcd with learners. A person has removed a member and added
// it again with the same peer URL: its pod has the data of the old ID, with which etcd ends each time. A learner that was
// promoted before the others have heard its name looks the same. So its PVC is released, and S2 holds as for each voter.
func isUnstartedVoter(o *Observed, m *Member) bool {
	return !m.Learner && !m.Started && upgradePathOf(o).knowsLearners()
}

// canPromoteEarly is true for a learner that has joined and does not respond yet, if the
// voters that serve without it are a quorum of the cluster that it makes. A learner that
// has ended before must respond: etcd goes by what it had then, and it may never come back.
func canPromoteEarly(q quorum, m *Member) bool {
	pod := podByName(q.pods, m.Name)
	return m.Learner && m.Started && pod != nil && pod.Running && pod.RestartCount == 0 && q.countServing() >= diagnosis.Quorum(len(listVoters(q.members))+1)
}

// crashLoopAfter is how often the container of a member that joins may end before a new member
// replaces it. Kubernetes waits longer each time, so that is after some minutes.
const crashLoopAfter = 5

// recreateJoining starts a member again that has not joined yet, as it is declared now. One that votes from
// the beginning, and that runs, may be needed for the quorum before it has told its name.
func recreateJoining(o *Observed, m *Member, version string) Plan {
	pod := podByName(o.Pods, m.Name)
	if pvcByName(o.PVCs, m.Name) == nil {
		return removeUnstarted(o, m, RemoveSurplus)
	}
	mode := RestartRolling
	switch outage, plan, waits := awaitQuorumWithout(o, m); {
	case !pod.Running:
		mode = RestartIdle
	case m.Learner:
	case waits:
		return plan
	case outage:
		mode = RestartWithOutage
	}
	return Plan{Actions: []Action{
		RecreatePod{Name: pod.Name, UID: pod.UID, Version: version, Mode: mode},
	}, RequeueAfter: recheckWaiting}
}

// promote makes a learner a voter if the voters that serve, with it, are a quorum
// of the cluster that it makes.
func promote(o *Observed, m *Member) Plan {
	if isRestarting(o, m) {
		return wait(recheckWaiting, ReasonWaitingForMember,
			"member "+m.Name+" restarts with another version", noActionNeeded)
	}
	voters, healthy := len(listVoters(o.Etcd.Members)), countPromoting(o)
	if healthy+1 < diagnosis.Quorum(voters+1) {
		return wait(recheckQuorum, ReasonQuorumAtRisk,
			fmt.Sprintf("%d of %d voters serve; one more voter would raise the quorum to %d", healthy, voters, diagnosis.Quorum(voters+1)),
			serveAgain)
	}
	if ahead := newestRaftIndex(o.Etcd.Members); !hasCaughtUp(o, m) {
		return wait(catchUpPace(o.Now, o.Cluster.Status.BlockedBy), ReasonLearnerCatchingUp,
			fmt.Sprintf("member %s has read about %d %% of the log", m.Name, m.RaftIndex*10/ahead*10), noActionNeeded)
	}
	return Plan{Actions: []Action{PromoteMember{ID: m.ID, Name: m.Name, Needed: needsVote(o)}}, RequeueAfter: recheckNow}
}

// countPromoting is how many voters serve while a learner becomes one.
func countPromoting(o *Observed) int { return quorumOf(o).countServing() - len(listRestarting(o)) }

// needsVote is true if the voters that serve are no quorum of the cluster that a promotion makes without the vote
// of the new one.
func needsVote(o *Observed) bool {
	return countPromoting(o) < diagnosis.Quorum(len(listVoters(o.Etcd.Members))+1)
}

// promotionPace is how soon to request the promotion of a learner again that does not respond. One whose
// pod is old is out of reach, perhaps of the leader, too.
func promotionPace(now time.Time, pod *Pod) time.Duration {
	const old = 5 * time.Minute
	if now.Sub(pod.Made) > old {
		return recheckWaiting
	}
	return recheckCatchUp
}

// catchUpPace is how soon to look again at a learner that reads the log. One that takes long
// reads a large database, or nothing at all.
func catchUpPace(now time.Time, blocked *v1beta2.BlockedBy) time.Duration {
	const long = time.Minute
	if b := blocked; b != nil && b.Reason == string(ReasonLearnerCatchingUp) && now.Sub(b.Since.Time) > long {
		return recheckWaiting
	}
	return recheckCatchUp
}

// admit lets etcd start in the prepared pod of a member that was added.
func admit(p *Pod, peers []string) AdmitPod {
	return AdmitPod{Name: p.Name, UID: p.UID, Peers: peers}
}
