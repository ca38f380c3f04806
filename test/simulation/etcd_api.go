// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

func refused(op string, p *process, kind error) error {
	return &etcd.Error{Op: op, Member: p.run.name, Kind: kind}
}

// quorumLeader returns the leader that p follows, if it leads a majority now.
func (e *etcdWorld) quorumLeader(p *process) *process {
	if p.leader == 0 {
		return nil
	}
	leader := e.member(p.dir.lineage, p.leader)
	if leader == nil || !leader.leads() || !e.reaches(p, leader) {
		return nil
	}
	e.replicate(leader)
	if !leader.leads() || e.supporters(leader) < leader.members.quorum() {
		return nil
	}
	return leader
}

// ready is what the readiness probe of a member asks.
func (e *etcdWorld) ready(p *process) bool {
	if p.leader == 0 || !p.serves {
		return false
	}
	leader := e.member(p.dir.lineage, p.leader)
	if leader == nil || !leader.leads() || !e.reaches(p, leader) || e.supporters(leader) < leader.members.quorum() {
		return false
	}
	return e.w.plan.LearnersReady || p.members.isVoter(p.dir.id)
}

// health is what a member says about itself.
func (e *etcdWorld) health(p *process) etcd.MemberHealth {
	return etcd.MemberHealth{
		ID: p.dir.id, ClusterID: p.dir.lineage.clusterID, Leader: p.leader, Version: p.version,
		DBSize: int64(1<<20 + 8*p.applied), RaftTerm: p.dir.term,
		RaftIndex: p.dir.index(p.dir.commit), RaftApplied: p.dir.index(p.applied), Learner: !p.members.isVoter(p.dir.id),
	}
}

// list reads the member list through a quorum.
func (e *etcdWorld) list(p *process) (etcd.Membership, error) {
	const op = "list members"
	if len(p.members.peers) > 0 && !p.members.isVoter(p.dir.id) {
		return etcd.Membership{}, refused(op, p, etcd.ErrLearner)
	}
	leader := e.quorumLeader(p)
	if leader == nil {
		return etcd.Membership{}, refused(op, p, etcd.ErrNoQuorum)
	}
	return leader.members.told(p), nil
}

// told is the list as a member tells it.
func (m *membership) told(by *process) etcd.Membership {
	list := etcd.Membership{ClusterID: by.dir.lineage.clusterID, From: by.dir.id, RaftTerm: by.dir.term}
	for i := range m.peers {
		peer := &m.peers[i]
		list.Members = append(list.Members, etcd.Member{ID: peer.id, Name: peer.name, PeerURLs: []string{peer.url}, Learner: peer.learner})
	}
	return list
}

// ownList is the member list that a member has applied.
func (e *etcdWorld) ownList(p *process) (etcd.Membership, error) {
	if len(p.members.peers) > 0 && !p.members.isVoter(p.dir.id) {
		return etcd.Membership{}, refused("list own members", p, etcd.ErrLearner)
	}
	return p.members.told(p), nil
}

// add adds a member. It is what MemberAdd does on the server.
func (e *etcdWorld) add(p *process, url string, learner bool) error {
	const op = "add member"
	leader := e.quorumLeader(p)
	if leader == nil {
		return refused(op, p, etcd.ErrNoQuorum)
	}
	if leader.members.byURL(url) != nil {
		return refused(op, p, etcd.ErrMemberExists)
	}
	if learner && slices.ContainsFunc(leader.members.peers, func(m peer) bool { return m.learner }) {
		return refused(op, p, etcd.ErrTooManyLearners)
	}
	if !learner && leader.strict && !e.mayAddVoter(leader) {
		return refused(op, p, etcd.ErrUnhealthy)
	}
	e.ids++
	kind := entryAddVoter
	if learner {
		kind = entryAddLearner
	}
	return e.change(op, leader, entry{kind: kind, member: peer{id: hash(url, fmt.Sprint(e.ids)), url: url}})
}

// mayAddVoter is the strict check: enough members have started, and all are there.
func (e *etcdWorld) mayAddVoter(leader *process) bool {
	voters, started := 1, 0
	for i := range leader.members.peers {
		if m := &leader.members.peers[i]; !m.learner {
			voters++
			if m.name != "" {
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
func (e *etcdWorld) mayRemove(leader *process, id uint64) bool {
	voters, started, connected := 0, 0, 0
	for i := range leader.members.peers {
		m := &leader.members.peers[i]
		if m.learner || m.id == id {
			continue
		}
		voters++
		if m.name != "" {
			started++
		}
		if other := e.member(leader.dir.lineage, m.id); other != nil && e.reaches(leader, other) {
			connected++
		}
	}
	target := e.member(leader.dir.lineage, id)
	down := target == nil || !e.reaches(leader, target)
	return voters > 0 && started >= voters/2+1 && (down || connected >= voters/2+1)
}

// promote makes a learner a voter if it has 90 % of the leader's log.
func (e *etcdWorld) promote(p *process, id uint64) error {
	const op = "promote member"
	leader := e.quorumLeader(p)
	if leader == nil {
		return refused(op, p, etcd.ErrNoQuorum)
	}
	m := leader.members.find(id)
	switch {
	case m == nil:
		return refused(op, p, etcd.ErrMemberNotFound)
	case !m.learner:
		return refused(op, p, etcd.ErrNotLearner)
	case 10*leader.match[id] < 9*len(leader.dir.log):
		return refused(op, p, etcd.ErrLearnerNotReady)
	}
	return e.change(op, leader, entry{kind: entryPromote, member: *m})
}

func (e *etcdWorld) remove(p *process, id uint64) error {
	const op = "remove member"
	leader := e.quorumLeader(p)
	if leader == nil {
		return refused(op, p, etcd.ErrNoQuorum)
	}
	m := leader.members.find(id)
	if m == nil {
		return refused(op, p, etcd.ErrMemberNotFound)
	}
	if leader.strict && !m.learner && !e.mayRemove(leader, id) {
		return refused(op, p, etcd.ErrUnhealthy)
	}
	return e.change(op, leader, entry{kind: entryRemove, member: *m})
}

// change proposes a change of the membership. Raft takes one at a time; one that is
// not confirmed may still happen later.
func (e *etcdWorld) change(op string, leader *process, new entry) error {
	for i := leader.dir.commit; i < len(leader.dir.log); i++ {
		if leader.dir.log[i].changesMembership() {
			return refused(op, leader, etcd.ErrTimeout)
		}
	}
	if !e.append(leader, new) {
		return refused(op, leader, etcd.ErrTimeout)
	}
	e.w.trace("etcd %s: %s %s: %s", leader.run.name, op, new.member.url, describeMembers(leader.members))
	return nil
}

func describeMembers(m *membership) string {
	s := ""
	for i := range m.peers {
		p := &m.peers[i]
		switch {
		case p.name == "":
			s += fmt.Sprintf(" (%x)", p.id)
		default:
			s += " " + p.name
		}
		if p.learner {
			s += "/learner"
		}
	}
	return "members" + s
}

// moveLeader hands over to a voter that is up to date.
func (e *etcdWorld) moveLeader(p *process, to uint64) error {
	const op = "move leader"
	if !p.leads() {
		return refused(op, p, etcd.ErrNotLeader)
	}
	if !p.members.isVoter(to) {
		return refused(op, p, etcd.ErrBadTransferee)
	}
	e.replicate(p)
	target := e.member(p.dir.lineage, to)
	if target == nil || !p.leads() || !e.reaches(p, target) || !target.dir.newer(p.dir) || !e.campaign(target, true) {
		return refused(op, p, etcd.ErrTimeout) // the old leader goes on
	}
	p.leader = target.dir.id
	return nil
}
