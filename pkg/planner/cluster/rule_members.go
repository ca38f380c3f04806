// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// ruleOrphans removes pods and claims of members that are no longer in etcd's list.
// The list was read after the pods were, so a pod that is not in it was removed
// from it.
func ruleOrphans(o *Observed) (Plan, bool) {
	var actions []Action
	for i := range o.Pods {
		p := &o.Pods[i]
		if p.Owned && !p.Terminating && o.member(p.Name) == nil {
			actions = append(actions, DeletePod{Name: p.Name, UID: p.UID})
		}
	}
	for i := range o.Claims {
		c := &o.Claims[i]
		if c.Owned && !c.Terminating && o.member(c.Name) == nil {
			actions = append(actions, o.dropClaim(c))
		}
	}
	return Plan{Actions: actions, RequeueAfter: recheckWaiting}, len(actions) > 0
}

// dropClaim deletes the claim of a member that was removed, or gives it up where
// the user wants to keep it.
func (o *Observed) dropClaim(c *Claim) Action {
	if pod := o.Cluster.Spec.Pod; pod != nil && pod.PersistentVolumeClaimRetentionPolicy != nil &&
		pod.PersistentVolumeClaimRetentionPolicy.WhenScaled == v1beta2.ClaimRetain {
		return ReleaseClaim{Name: c.Name, UID: c.UID}
	}
	return DeleteClaim{Name: c.Name, UID: c.UID}
}

// ruleInFlight finishes the membership change that is under way: a learner is
// promoted, or removed when it is not wanted or has lost what it had.
func ruleInFlight(o *Observed) (Plan, bool) {
	m := o.inFlight()
	if m == nil {
		return Plan{}, false
	}
	pod := o.pod(m.Name)
	switch {
	case m.Learner && len(o.voters()) >= o.size()+o.surge():
		return removeMember(o, m, RemoveUnwanted), true
	case !m.Started && o.admissible(m):
		// The controller stopped before it admitted the pod.
		return Plan{Actions: []Action{o.admit(m)}, RequeueAfter: recheckWaiting}, true
	case pod.gone() && o.claim(m.Name) == nil:
		// The pod is lost with its disk. A member must never start again with less than
		// it had: this one goes and a new one comes.
		return removeUnstarted(o, m, RemoveLost), true
	case pod.gone():
		return wait(recheckWaiting, "WaitingForPod", "pod "+m.Name+" is going away and comes back with its volume", "nothing, unless it lasts"), true
	case m.Learner && m.Started && !o.saidToHaveStarted(m):
		return Plan{RequeueAfter: recheckNow}, true
	case m.Learner && m.Health == Healthy:
		return promote(o, m), true
	case o.spareLearner(m):
		// A learner that joined by a snapshot of the database may serve clients only
		// seconds after it has caught up. Its vote is not needed for the quorum that it
		// joins, and etcd refuses if it has not caught up, so there is nothing to wait for.
		return Plan{Actions: []Action{PromoteMember{ID: m.ID, Name: m.Name}}, RequeueAfter: recheckCatchUp}, true
	case o.stale(pod) && (!m.Started || !pod.Running):
		return renewJoining(o, m), true
	case pod.Outdated && !pod.Running && o.joinVersion() == "":
		// It waits for an image that is not wanted any more.
		return Plan{Actions: []Action{
			UpgradePod{Name: pod.Name, UID: pod.UID, Version: o.Cluster.Spec.Version, Waiting: true},
		}, RequeueAfter: recheckWaiting}, true
	case m.Learner && !pod.Running && pod.Ends >= wedgedAfter:
		// What it has may be damaged, and nobody else may join beside it. It has no vote,
		// and what it holds is a copy.
		return removeMember(o, m, RemoveWedged), true
	case !m.Started && o.misfit(pod):
		// etcd refuses to start a member that was told of other peers than the list
		// has, so this one will never join.
		return removeUnstarted(o, m, RemoveMisfit), true
	default:
		return wait(recheckCatchUp, "WaitingForMember",
			"member "+m.Name+" is joining and does not serve yet"+waitingFor(pod), "nothing, unless it lasts"), true
	}
}

// saidToHaveStarted is true once the status says that a member has started. It comes before
// the vote: should the quorum be lost next, whoever the status calls pending does not vote.
func (o *Observed) saidToHaveStarted(m *Member) bool {
	s := o.lastMemberStatus(m)
	return s != nil && s.Role != v1beta2.MemberRolePending
}

// wedgedAfter is how often the container of a learner may end before another one takes its
// place. Kubernetes waits longer each time, so that is after some minutes.
const wedgedAfter = 5

// renewJoining starts a member again that has not joined yet, as it is declared now.
func renewJoining(o *Observed, m *Member) Plan {
	pod := o.pod(m.Name)
	if o.claim(m.Name) == nil {
		return removeUnstarted(o, m, RemoveUnwanted)
	}
	return Plan{Actions: []Action{
		RecreatePod{Name: pod.Name, UID: pod.UID, Version: pod.Version, Waiting: !pod.Running},
	}, RequeueAfter: recheckWaiting}
}

// spareLearner is true for a learner that has joined and does not answer yet, if the
// voters that serve without it are a quorum of the cluster that it makes. One that has
// ended before must answer: etcd goes by what it had then, and it may never come back.
func (o *Observed) spareLearner(m *Member) bool {
	pod := o.pod(m.Name)
	return m.Learner && m.Started && pod != nil && pod.Running && pod.Ends == 0 && o.healthyVoters() >= quorum(len(o.voters())+1)
}

// inFlight returns the member whose joining is not finished, or nil.
func (o *Observed) inFlight() *Member {
	for i := range o.Etcd.Members {
		if m := &o.Etcd.Members[i]; m.Learner || !m.Started {
			return m
		}
	}
	return nil
}

// misfit is true if a pod was started to join other members than there are.
func (o *Observed) misfit(p *Pod) bool {
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

// removeUnstarted takes a member out that cannot join. A learner carries no vote; a
// voter that never started is removed only under the rule for voters.
func removeUnstarted(o *Observed, m *Member, reason RemoveReason) Plan {
	if m.Learner {
		return removeMember(o, m, reason)
	}
	return removeVoter(o, m, reason)
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
		return wait(recheckWaiting, "WaitingForMember",
			"member "+m.Name+" restarts with another version", "nothing, unless it lasts")
	}
	voters, healthy := len(o.voters()), o.healthyVoters()-len(o.restarting())
	if healthy+1 < quorum(voters+1) {
		return wait(recheckQuorum, "QuorumAtRisk",
			fmt.Sprintf("%d of %d voters serve; one more voter would raise the quorum to %d", healthy, voters, quorum(voters+1)),
			"the members that do not serve must come back")
	}
	if ahead := o.ahead(); m.RaftIndex < ahead/10*9 {
		return wait(recheckCatchUp, "LearnerCatchingUp",
			fmt.Sprintf("member %s has read up to entry %d of %d", m.Name, m.RaftIndex, ahead), "nothing, unless it lasts")
	}
	return Plan{Actions: []Action{PromoteMember{ID: m.ID, Name: m.Name}}, RequeueAfter: recheckNow}
}

// ruleReplace takes out a voter whose pod is gone for good together with its data, once
// the pod of its successor waits; rule scale-up then adds that one. A voter with a volume comes back by itself. If
// there are more voters than wanted, rule scale-down takes the one out.
func ruleReplace(o *Observed) (Plan, bool) {
	if len(o.voters()) > o.size() {
		return Plan{}, false
	}
	for _, m := range o.voters() {
		pod := o.pod(m.Name)
		if !pod.gone() {
			continue
		}
		if o.claim(m.Name) != nil {
			return wait(recheckWaiting, "WaitingForPod",
				"pod "+m.Name+" is going away and comes back with its volume",
				"if its node is gone for good, delete the pod with --force"), true
		}
		if o.joining() == nil {
			return o.awaitPrepared(), true
		}
		return removeVoter(o, m, RemoveLost), true
	}
	return Plan{}, false
}

// ruleScaleDown removes one voter: one that does not serve if there is one, never
// the leader while another can go, the youngest otherwise. If there is one voter too
// many because one is replaced, that is the one that goes.
func ruleScaleDown(o *Observed) (Plan, bool) {
	surplus := len(o.voters()) - o.size()
	if surplus <= 0 {
		return Plan{}, false
	}
	victim := o.victim(surplus <= o.surge())
	if victim.Health == Healthy && o.leader() == nil {
		return wait(recheckQuorum, "NoLeader",
			"the members do not agree on who leads, and the leader is not the one to remove", "nothing, unless it lasts"), true
	}
	for _, m := range o.restarting() {
		if m != victim {
			return wait(recheckWaiting, "WaitingForMember",
				"member "+m.Name+" restarts with another version, and none goes meanwhile", "nothing, unless it lasts"), true
		}
	}
	if p := o.pod(victim.Name); p.gone() && p != nil && o.stale(p) && o.claim(victim.Name) == nil {
		return removeVoter(o, victim, RemoveReplaced), true // its pod was sent away before
	}
	if o.due(victim) != replace {
		return removeVoter(o, victim, RemoveScaleDown), true
	}
	if other := o.notReady(victim); other != nil && victim.Health == Healthy {
		return waitReady(other), true
	}
	if victim.Health != Healthy && o.leader() == victim {
		return wait(recheckQuorum, "WaitingForMember",
			"member "+victim.Name+" leads and does not answer, so it cannot hand over before it is replaced", "nothing, unless it lasts"), true
	}
	return removeVoter(o, victim, RemoveReplaced), true
}

// victim returns the voter that can best be missed. If it is to be one that another
// one replaces, the others go only if they do not run and do not come back: the pod of
// the one that is replaced is gone before the member is.
func (o *Observed) victim(replaced bool) *Member {
	var victim *Member
	leader := o.leader()
	for _, m := range o.voters() {
		if p := o.pod(m.Name); replaced && o.due(m) != replace && (o.returns(m) || !p.gone() && p.Running) {
			continue
		}
		if victim == nil || o.spare(m, leader) >= o.spare(victim, leader) {
			victim = m
		}
	}
	return victim
}

// returns is true for a member whose pod is gone and whose volume is there.
func (o *Observed) returns(m *Member) bool {
	return o.pod(m.Name).gone() && o.claim(m.Name) != nil
}

// spare is higher for members that may better be missed: those that do not serve, then
// those that were chosen before, then those that are to be replaced.
func (o *Observed) spare(m, leader *Member) int {
	rank, replaced := o.rank(m, leader), o.due(m) == replace
	switch {
	case rank >= 2:
		return rank + 2
	case rank == 1 && replaced:
		return 3
	case rank == 0 && replaced && m.Health == Healthy:
		return 2
	default:
		return rank
	}
}

// rank is higher for members that may better be missed. Whom the others follow is
// the leader even if it does not answer the controller.
func (o *Observed) rank(m, leader *Member) int {
	pod := o.pod(m.Name)
	switch {
	case pod.gone():
		return 4
	case m == leader:
		return 0
	case m.Health != Healthy:
		return 3
	case pod.Role == PodLeaving:
		return 2
	default:
		return 1
	}
}

// removeVoter removes a voter if those that serve without it are a quorum of the
// cluster that remains (S2). A leader hands over first, and clients are served until
// they are elsewhere.
func removeVoter(o *Observed, m *Member, reason RemoveReason) Plan {
	voters := len(o.voters())
	healthy := o.without(m)
	if voters == 1 || healthy < quorum(voters-1) {
		return wait(recheckQuorum, "QuorumAtRisk",
			fmt.Sprintf("member %s cannot be removed: %d of the %d other voters serve and %d must", m.Name, healthy, voters-1, quorum(voters-1)),
			"the members that do not serve must come back")
	}
	plan, leaves := o.dismiss(m, reason)
	if !leaves {
		plan = removeMember(o, m, reason)
	}
	plan.Leaving = m.Name
	return plan
}

// dismiss takes a voter that serves away from its clients before it is removed. etcd
// gives requests to a removed member no answer; when its pod is deleted it ends those
// that it has, and tells clients to go elsewhere. So the pod goes first, wherever the
// other voters are a quorum meanwhile. The member votes until its container has ended.
//
// Four voters that are to be three tolerate no failure in between, as three do while one
// of them restarts.
func (o *Observed) dismiss(m *Member, reason RemoveReason) (Plan, bool) {
	pod := o.pod(m.Name)
	switch {
	case pod == nil || pod.Finished:
		return Plan{}, false
	case m.Health != Healthy && o.stops(pod):
		return wait(recheckWaiting, "WaitingForPod",
			"the container of member "+m.Name+" is stopping", "no action needed unless this persists"), true
	case m.Health != Healthy && !pod.Routed:
		return Plan{}, false // it has no clients
	}
	if !pod.Terminating && pod.Role != PodLeaving {
		return Plan{Actions: []Action{LabelPod{Name: pod.Name, UID: pod.UID, Role: PodLeaving}}, RequeueAfter: recheckWaiting}, true
	}
	if to := o.successor(m); to != nil && o.leader() == m && m.Health == Healthy {
		return Plan{Actions: []Action{MoveLeader{From: m.ID, FromName: m.Name, To: to.ID, ToName: to.Name}}, RequeueAfter: recheckNow}, true
	}
	voters := len(o.voters())
	switch {
	case !pod.Terminating && pod.Routed:
		return wait(recheckWaiting, "WaitingForService",
			"the client Service still leads to member "+m.Name+", which is about to be removed", "no action needed unless this persists"), true
	case m.Health != Healthy || o.without(m) < quorum(voters):
		return Plan{}, false
	case pod.Terminating:
		return wait(recheckWaiting, "WaitingForPod",
			"member "+m.Name+" is ending the requests of its clients", "no action needed unless this persists"), true
	default:
		return Plan{
			Actions:      []Action{DeletePod{Name: pod.Name, UID: pod.UID, Leaves: true, Replaced: reason == RemoveReplaced}},
			RequeueAfter: recheckWaiting,
		}, true
	}
}

// stopLimit bounds how long a member that does not respond is kept for its container to
// end: the kubelet of a lost node never says so.
const stopLimit = 15 * time.Second

// stops is true while the container of a terminating pod runs, for up to stopLimit. etcd
// closes the client port first. A member that is removed between that and its end drops
// the writes that it has accepted and not answered.
func (o *Observed) stops(pod *Pod) bool {
	return pod.Terminating && pod.Running && o.Now.Sub(pod.DeletionRequested) < stopLimit
}

// successor is the healthy follower that is furthest ahead.
func (o *Observed) successor(leader *Member) *Member {
	var best *Member
	for _, m := range o.voters() {
		if m == leader || m.Health != Healthy || o.pod(m.Name).gone() {
			continue
		}
		if best == nil || m.RaftIndex > best.RaftIndex {
			best = m
		}
	}
	return best
}

// removeMember removes m from etcd and then, because it can never come back, its
// pod and its claim.
func removeMember(o *Observed, m *Member, reason RemoveReason) Plan {
	actions := []Action{RemoveMember{ID: m.ID, Name: m.Name, Reason: reason}}
	if p := o.pod(m.Name); p != nil && !p.Terminating {
		actions = append(actions, DeletePod{Name: p.Name, UID: p.UID})
	}
	if c := o.claim(m.Name); c != nil {
		actions = append(actions, o.dropClaim(c))
	}
	return Plan{Actions: actions, RequeueAfter: recheckNow}
}
