// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// ruleJoining finishes the membership change that is under way: a learner is
// promoted, or removed when it is not wanted or has lost what it had.
func ruleJoining(o *Observed) (Plan, bool) {
	m := o.joiningMember()
	if m == nil {
		return Plan{}, false
	}
	pod := o.pod(m.Name)
	switch {
	case m.Learner && len(o.voters()) >= o.size()+o.surge():
		return removeMember(o, m, RemoveSurplus), true
	case !m.Started && o.admissible(m):
		// The controller stopped before it admitted the pod.
		return Plan{Actions: []Action{o.admit(m)}, RequeueAfter: recheckWaiting}, true
	case o.mustBeReplaced(m), m.Learner && m.Health != Healthy && o.overdue(pod):
		// A learner has no vote, and what it holds is a copy: it needs no permission.
		return removeUnstarted(o, m, RemoveAway), true
	case pod.gone() && o.pvc(m.Name) == nil:
		// The pod is lost with its disk. A member must never start again with less than
		// it had: this member is removed and a new member joins.
		return removeUnstarted(o, m, RemoveLost), true
	case pod.gone():
		return wait(recheckWaiting, ReasonWaitingForPod, "pod "+m.Name+" is being deleted and is created again with its PVC", noActionNeeded), true
	case m.Learner && m.Started && !o.saidToHaveStarted(m):
		return Plan{RequeueAfter: recheckNow}, true
	case m.Learner && m.Health == Healthy:
		return promote(o, m), true
	case o.mayPromoteEarly(m):
		// A learner that joined by a snapshot of the database may serve clients only
		// seconds after it has caught up. Its vote is not needed for the quorum that it
		// joins, and etcd rejects the promotion if it has not caught up, so there is nothing
		// to wait for.
		return Plan{Actions: []Action{PromoteMember{ID: m.ID, Name: m.Name}}, RequeueAfter: recheckCatchUp}, true
	case o.stale(pod) && (!m.Started || !pod.Running):
		return recreateJoining(o, m), true
	case pod.Outdated && !pod.Running && o.joinVersion() == "":
		// It waits for an image that is not wanted any more.
		return Plan{Actions: []Action{
			UpgradePod{Name: pod.Name, UID: pod.UID, Version: o.Cluster.Spec.Version, Mode: RestartIdle},
		}, RequeueAfter: recheckWaiting}, true
	case m.Learner && !pod.Running && pod.RestartCount >= crashLoopAfter:
		// What it has may be damaged, and no other member may join beside it. It has no vote,
		// and what it holds is a copy.
		return removeMember(o, m, RemoveCrashLooping), true
	case !m.Started && o.peersDiffer(pod):
		// etcd does not start a member whose configured peers differ from the member list,
		// so this member will never join.
		return removeUnstarted(o, m, RemovePeersDiffer), true
	default:
		return wait(recheckCatchUp, ReasonWaitingForMember,
			"member "+m.Name+" joins and does not serve yet"+waitingFor(pod), noActionNeeded), true
	}
}

// saidToHaveStarted is true once the status says that a member has started. It comes before
// the vote: should the quorum be lost next, a member that the status calls pending does not vote.
func (o *Observed) saidToHaveStarted(m *Member) bool {
	s := o.lastMemberStatus(m)
	return s != nil && s.Role != v1beta2.MemberRolePending
}

// crashLoopAfter is how often the container of a learner may end before a new member
// replaces it. Kubernetes waits longer each time, so that is after some minutes.
const crashLoopAfter = 5

// recreateJoining starts a member again that has not joined yet, as it is declared now.
func recreateJoining(o *Observed, m *Member) Plan {
	pod := o.pod(m.Name)
	if o.pvc(m.Name) == nil {
		return removeUnstarted(o, m, RemoveSurplus)
	}
	mode := RestartRolling
	if !pod.Running {
		mode = RestartIdle
	}
	return Plan{Actions: []Action{
		RecreatePod{Name: pod.Name, UID: pod.UID, Version: pod.Version, Mode: mode},
	}, RequeueAfter: recheckWaiting}
}

// mayPromoteEarly is true for a learner that has joined and does not respond yet, if the
// voters that serve without it are a quorum of the cluster that it makes. A learner that
// has ended before must respond: etcd goes by what it had then, and it may never come back.
func (o *Observed) mayPromoteEarly(m *Member) bool {
	pod := o.pod(m.Name)
	return m.Learner && m.Started && pod != nil && pod.Running && pod.RestartCount == 0 && o.healthyVoters() >= diagnosis.Quorum(len(o.voters())+1)
}

// peersDiffer is true if a pod was started to join other members than there are.
func (o *Observed) peersDiffer(p *Pod) bool {
	if p.Peers == nil {
		return false
	}
	for i := range o.Etcd.Members {
		if !slices.Contains(p.Peers, o.Etcd.Members[i].Name) {
			return true
		}
	}
	return len(p.Peers) != len(o.Etcd.Members)
}

// ahead is the newest raft entry that a voter has.
func (o *Observed) ahead() uint64 {
	var newest uint64
	for _, m := range o.voters() {
		newest = max(newest, m.RaftIndex)
	}
	return newest
}

// promote makes a learner a voter if the voters that serve, with it, are a quorum
// of the cluster that it makes.
func promote(o *Observed, m *Member) Plan {
	if o.restarts(m) {
		return wait(recheckWaiting, ReasonWaitingForMember,
			"member "+m.Name+" restarts with another version", noActionNeeded)
	}
	voters, healthy := len(o.voters()), o.healthyVoters()-len(o.restarting())
	if healthy+1 < diagnosis.Quorum(voters+1) {
		return wait(recheckQuorum, ReasonQuorumAtRisk,
			fmt.Sprintf("%d of %d voters serve; one more voter would raise the quorum to %d", healthy, voters, diagnosis.Quorum(voters+1)),
			serveAgain)
	}
	if ahead := o.ahead(); m.RaftIndex < ahead/10*9 {
		return wait(o.catchUpPace(), ReasonLearnerCatchingUp,
			fmt.Sprintf("member %s has read about %d %% of the log", m.Name, m.RaftIndex*10/ahead*10), noActionNeeded)
	}
	needed := healthy < diagnosis.Quorum(voters+1)
	return Plan{Actions: []Action{PromoteMember{ID: m.ID, Name: m.Name, Needed: needed}}, RequeueAfter: recheckNow}
}

// catchUpPace is how soon to look again at a learner that reads the log. One that takes long
// reads a large database, or nothing at all.
func (o *Observed) catchUpPace() time.Duration {
	const long = time.Minute
	if b := o.Cluster.Status.BlockedBy; b != nil && b.Reason == string(ReasonLearnerCatchingUp) && o.Now.Sub(b.Since.Time) > long {
		return recheckWaiting
	}
	return recheckCatchUp
}
