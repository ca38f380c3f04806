// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// Rejected is the error of a member that rejects a request.
func Rejected(op string, p *Process, kind error) error {
	return &etcd.Error{Op: op, Member: p.Run.Name(), Kind: kind}
}

// QuorumLeader returns the leader that p follows, if it leads a majority now.
func (e *World) QuorumLeader(p *Process) *Process {
	if p.Leader == 0 {
		return nil
	}
	leader := e.Member(p.Dir.Lineage, p.Leader)
	if leader == nil || leader.Stuck || !leader.Leads() || !e.reaches(p, leader) {
		return nil
	}
	e.replicate(leader)
	if !leader.Leads() || e.supporters(leader) < leader.Members.Quorum() {
		return nil
	}
	return leader
}

// IsReady is what the readiness probe of a member asks.
func (e *World) IsReady(p *Process) bool {
	if p.Leader == 0 || !p.Serves || p.Stuck {
		return false
	}
	leader := e.Member(p.Dir.Lineage, p.Leader)
	if leader == nil || !leader.Leads() || !e.reaches(p, leader) || e.supporters(leader) < leader.Members.Quorum() {
		return false
	}
	return e.plan.LearnersReady || p.Members.IsVoter(p.Dir.Id)
}

// Health is what a member says about itself.
func (e *World) Health(p *Process) etcd.MemberHealth {
	h := etcd.MemberHealth{
		ID: p.Dir.Id, ClusterID: p.Dir.Lineage.ClusterID, Leader: p.Leader, Version: p.Version,
		RaftTerm:  p.Dir.Term,
		RaftIndex: p.Dir.index(p.Dir.commit), RaftApplied: p.Dir.index(p.Applied), Learner: !p.Members.IsVoter(p.Dir.Id),
	}
	p.addSpace(&h)
	return h
}

// List reads the member list through a quorum.
func (e *World) List(p *Process) (etcd.Membership, error) {
	const op = "list members"
	if len(p.Members.Peers) > 0 && !p.Members.IsVoter(p.Dir.Id) {
		return etcd.Membership{}, Rejected(op, p, etcd.ErrLearner)
	}
	leader := e.QuorumLeader(p)
	if leader == nil {
		return etcd.Membership{}, Rejected(op, p, etcd.ErrNoQuorum)
	}
	return leader.Members.told(p), nil
}

// Read is a linearizable read at one voter, which must have applied what was committed before.
func (e *World) Read(p *Process) error {
	const op = "linearizable read"
	if leader := e.QuorumLeader(p); leader == nil || p.Applied < leader.Dir.commit {
		return Rejected(op, p, etcd.ErrTimeout)
	}
	return nil
}

// OwnList is the member list that a member has applied.
func (e *World) OwnList(p *Process) (etcd.Membership, error) {
	if len(p.Members.Peers) > 0 && !p.Members.IsVoter(p.Dir.Id) {
		return etcd.Membership{}, Rejected("list own members", p, etcd.ErrLearner)
	}
	return p.Members.told(p), nil
}

// Add adds a member. It is what MemberAdd does on the server.
func (e *World) Add(p *Process, url string, learner bool) error {
	const op = "add member"
	leader := e.QuorumLeader(p)
	if leader == nil {
		return Rejected(op, p, etcd.ErrNoQuorum)
	}
	if leader.Members.ByURL(url) != nil {
		return Rejected(op, p, etcd.ErrMemberExists)
	}
	if learner && slices.ContainsFunc(leader.Members.Peers, func(m Peer) bool { return m.Learner }) {
		return Rejected(op, p, etcd.ErrTooManyLearners)
	}
	if !learner && leader.strict && !e.mayAddVoter(leader) {
		return Rejected(op, p, etcd.ErrUnhealthy)
	}
	e.ids++
	kind := entryAddVoter
	if learner {
		kind = entryAddLearner
	}
	return e.change(op, p, leader, Entry{Kind: kind, member: Peer{Id: hash(url, fmt.Sprint(e.ids)), Url: url, Since: leader.Dir.Lineage.LowestVersion()}})
}

// mayAddVoter is the strict check: enough members have started, and all are there.
func (e *World) mayAddVoter(leader *Process) bool {
	voters, started := 1, 0
	for i := range leader.Members.Peers {
		if m := &leader.Members.Peers[i]; !m.Learner {
			voters++
			if m.Name != "" {
				started++
			}
		}
	}
	if started == 1 && voters == 2 {
		return true
	}
	return started >= voters/2+1 && e.supporters(leader) == voters-1
}

// mayRemove is the strict check for a removal.
func (e *World) mayRemove(leader *Process, id uint64) bool {
	voters, started, connected := 0, 0, 0
	for i := range leader.Members.Peers {
		m := &leader.Members.Peers[i]
		if m.Learner || m.Id == id {
			continue
		}
		voters++
		if m.Name != "" {
			started++
		}
		if other := e.Member(leader.Dir.Lineage, m.Id); other != nil && e.reaches(leader, other) {
			connected++
		}
	}
	target := e.Member(leader.Dir.Lineage, id)
	down := target == nil || !e.reaches(leader, target)
	return voters > 0 && started >= voters/2+1 && (down || connected >= voters/2+1)
}

// Promote makes a learner a voter if it has 90 % of the leader's log.
func (e *World) Promote(p *Process, id uint64) error {
	const op = "promote member"
	leader := e.QuorumLeader(p)
	if leader == nil {
		return Rejected(op, p, etcd.ErrNoQuorum)
	}
	m := leader.Members.Find(id)
	switch {
	case m == nil:
		return Rejected(op, p, etcd.ErrMemberNotFound)
	case !m.Learner:
		return Rejected(op, p, etcd.ErrNotLearner)
	case 10*leader.match[id] < 9*len(leader.Dir.Log):
		return Rejected(op, p, etcd.ErrLearnerNotReady)
	}
	return e.change(op, p, leader, Entry{Kind: entryPromote, member: *m})
}

// Remove removes a member. It is what MemberRemove does on the server.
func (e *World) Remove(p *Process, id uint64) error {
	const op = "remove member"
	leader := e.QuorumLeader(p)
	if leader == nil {
		return Rejected(op, p, etcd.ErrNoQuorum)
	}
	m := leader.Members.Find(id)
	if m == nil {
		return Rejected(op, p, etcd.ErrMemberNotFound)
	}
	if leader.strict && !m.Learner && !e.mayRemove(leader, id) {
		return Rejected(op, p, etcd.ErrUnhealthy)
	}
	return e.change(op, p, leader, Entry{Kind: entryRemove, member: *m})
}

// change proposes a change of the membership. Raft takes one at a time; one that is
// not confirmed may still happen later. The member that got the request responds after it has applied the
// change itself. The other members may hear of the commit later.
func (e *World) change(op string, asked, leader *Process, new Entry) error {
	for i := leader.Dir.commit; i < len(leader.Dir.Log); i++ {
		if leader.Dir.Log[i].changesMembership() {
			return Rejected(op, leader, etcd.ErrTimeout)
		}
	}
	if !e.Append(leader, new) {
		return Rejected(op, leader, etcd.ErrTimeout)
	}
	e.Trace("etcd %s: %s %s: %s", leader.Run.Name(), op, new.member.Url, DescribeMembers(leader.Members))
	if e.applyUpTo(asked, min(leader.Dir.commit, len(asked.Dir.Log))); asked.Applied < leader.Dir.commit {
		return Rejected(op, asked, etcd.ErrTimeout)
	}
	return nil
}

// MoveLeader hands over to a voter that is up to date.
func (e *World) MoveLeader(p *Process, to uint64) error {
	const op = "move leader"
	if p.Stuck {
		return Rejected(op, p, etcd.ErrTimeout)
	}
	if !p.Leads() {
		return Rejected(op, p, etcd.ErrNotLeader)
	}
	if !p.Members.IsVoter(to) {
		return Rejected(op, p, etcd.ErrBadTransferee)
	}
	e.replicate(p)
	target := e.Member(p.Dir.Lineage, to)
	if target == nil || !p.Leads() || !e.reaches(p, target) || !target.Dir.IsNewer(p.Dir) || !e.campaign(target, true) {
		return Rejected(op, p, etcd.ErrTimeout) // the old leader goes on
	}
	p.Leader = target.Dir.Id
	return nil
}
