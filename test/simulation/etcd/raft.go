// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"slices"
	"time"
)

// TickEvery is the time between two messages that members send by themselves.
const TickEvery = 500 * time.Millisecond

// Tick lets every member do what time makes it do: leaders send, members without a
// leader call elections, new members say their names.
func (e *World) Tick() {
	names := e.Network.IsResolvable()
	for _, p := range e.Processes {
		p.linked = p.linked || names
	}
	for _, p := range slices.Clone(e.Processes) {
		if p.Leads() && e.isAlive(p) && !p.Stuck {
			e.lead(p)
		}
	}
	for _, p := range slices.Clone(e.Processes) {
		if e.isAlive(p) && !p.Stuck {
			e.follow(p)
		}
	}
}

func (e *World) isAlive(p *Process) bool { return slices.Contains(e.Processes, p) }

// lead sends to all members, and steps down if too few respond.
func (e *World) lead(p *Process) {
	e.replicate(p)
	if p.Leads() && e.supporters(p) < p.Members.Quorum() {
		p.Leader = 0
	}
}

// supporters counts the voters that the leader reaches.
func (e *World) supporters(p *Process) int {
	n := 0
	for _, other := range e.Processes {
		if p.Members.IsVoter(other.Dir.Id) && e.reaches(p, other) && other.Leader == p.Dir.Id && other.Dir.Term == p.Dir.Term {
			n++
		}
	}
	return n
}

// follow is what a member does that does not lead.
func (e *World) follow(p *Process) {
	if p.Leads() {
		e.publish(p)
		return
	}
	if l := e.Member(p.Dir.Lineage, p.Leader); l == nil || !l.Leads() || !e.reaches(p, l) {
		if p.Leader != 0 {
			p.heard, p.patience = e.Elapsed, e.Dice.Between(time.Second, 2*time.Second)
		}
		p.Leader = 0
	}
	if e.isToldRemoved(p) {
		e.exit(p)
		return
	}
	if p.Leader != 0 {
		e.publish(p)
		return
	}
	if e.Elapsed-p.heard >= p.patience {
		p.heard, p.patience = e.Elapsed, e.Dice.Between(time.Second, 2*time.Second)
		e.campaign(p, false)
	}
}

// isToldRemoved is true if a member knows that it was removed, from its own log or from
// another member.
func (e *World) isToldRemoved(p *Process) bool {
	return slices.ContainsFunc(e.Processes, func(other *Process) bool {
		return slices.Contains(other.Members.removed, p.Dir.Id) && e.reaches(p, other)
	})
}

// exit ends a process from within.
func (e *World) exit(p *Process) {
	e.Stop(p)
	p.Run.Exited()
}

// campaign calls an election: the member with the newest log of a majority leads. A member
// that hears its leader does not vote, unless that leader is handing over.
func (e *World) campaign(p *Process, transfer bool) bool {
	if !p.Members.IsVoter(p.Dir.Id) {
		return false
	}
	votes, term := 0, p.Dir.Term
	var electors []*Process
	for _, other := range e.Processes {
		if !e.reaches(p, other) || !p.Members.IsVoter(other.Dir.Id) {
			continue
		}
		following := other.Leader != 0 && other != p && !transfer
		if !following && p.Dir.IsNewer(other.Dir) && other.writes() {
			votes++
			electors = append(electors, other)
		}
		term = max(term, other.Dir.Term)
	}
	if votes < p.Members.Quorum() || p.Stuck {
		return false
	}
	for _, other := range electors {
		other.Dir.Term = term + 1
	}
	e.Trace("etcd %s leads in term %d with %d entries", p.Run.Name(), term+1, len(p.Dir.Log))
	p.Leader, p.match = p.Dir.Id, map[uint64]int{}
	e.Observer.Elected(p)
	e.Append(p, Entry{Kind: EntryEmpty})
	return true
}

// Append adds an entry to the leader's log and sends it. It is true if the entry was
// committed.
func (e *World) Append(p *Process, new Entry) bool {
	if !p.writes() {
		return false
	}
	new.term = p.Dir.Term
	if v := minor(p.Version); new.by == 0 || v < new.by {
		new.by = v
	}
	if n := len(p.Dir.Log); n > 0 {
		new.Extra += p.Dir.Log[n-1].Extra
	}
	p.Dir.Log = append(p.Dir.Log, new)
	index := len(p.Dir.Log)
	e.replicate(p)
	return p.Dir.commit >= index && p.Dir.Log[index-1].term == new.term
}

// replicate sends the leader's log to all members that it reaches, and commits.
func (e *World) replicate(leader *Process) {
	leader.match[leader.Dir.Id] = len(leader.Dir.Log)
	for _, p := range slices.Clone(e.Processes) {
		if p == leader || !e.reaches(leader, p) || leader.Members.Find(p.Dir.Id) == nil || !e.isAlive(p) {
			continue
		}
		if p.Dir.Term > leader.Dir.Term {
			leader.Leader = 0
			return
		}
		e.send(leader, p)
	}
	e.commit(leader)
}

// send brings one member up to date.
func (e *World) send(leader, p *Process) {
	if p.Dir.Term != leader.Dir.Term && !p.writes() {
		return
	}
	p.Dir.Term, p.Leader, p.heard = leader.Dir.Term, leader.Dir.Id, e.Elapsed
	if e.stalls(leader, p) {
		return
	}
	if known := min(leader.match[p.Dir.Id], leader.Dir.commit); len(p.Dir.Log) < known {
		// The member has forgotten what it had acknowledged; raft panics.
		e.Trace("etcd %s: tocommit(%d) is out of range [lastIndex(%d)]", p.Run.Name(), known, len(p.Dir.Log))
		e.exit(p)
		return
	}
	same := commonPrefix(leader.Dir.Log, p.Dir.Log)
	if same < p.Dir.commit {
		e.Violated("S1", "member %s had committed %d entries and the leader %s has other ones from %d on", p.Run.Name(), p.Dir.commit, leader.Run.Name(), same)
	}
	end := len(leader.Dir.Log)
	if e.Slow > 0 && end-same > e.Slow {
		end = same + e.Slow
	}
	if end > same || len(p.Dir.Log) > same {
		if !p.writes() {
			return
		}
		p.Dir.Log = append(p.Dir.Log[:same], leader.Dir.Log[same:end]...)
	}
	leader.match[p.Dir.Id] = len(p.Dir.Log)
	e.applyUpTo(p, min(leader.Dir.commit, len(p.Dir.Log)))
}

// stalls is true for a learner that hears its leader and gets no entry.
func (e *World) stalls(leader, p *Process) bool {
	if leader.Members.IsVoter(p.Dir.Id) {
		return false
	}
	if e.StallNext && !p.Dir.Stalled && len(p.Dir.Log) == 0 {
		p.Dir.Stalled, e.StallNext = true, false
		e.Trace("etcd %s gets no entries of the log", p.Run.Name())
	}
	return p.Dir.Stalled
}

// commonPrefix looks from the end, because logs mostly agree.
func commonPrefix(a, b []Entry) int {
	n := min(len(a), len(b))
	for n > 0 && a[n-1].term != b[n-1].term {
		n--
	}
	return n
}

// commit finds what a majority has.
func (e *World) commit(leader *Process) {
	var matches []int
	for i := range leader.Members.Peers {
		if p := &leader.Members.Peers[i]; !p.Learner {
			matches = append(matches, leader.match[p.Id])
		}
	}
	if len(matches) == 0 {
		return
	}
	slices.Sort(matches)
	index := matches[len(matches)-leader.Members.Quorum()]
	if index <= leader.Dir.commit || leader.Dir.Log[index-1].term != leader.Dir.Term {
		return
	}
	e.applyUpTo(leader, index)
	leader.Dir.Lineage.Members = leader.Members
	for _, p := range slices.Clone(e.Processes) {
		if p != leader && p.Leader == leader.Dir.Id && e.reaches(leader, p) && !e.Dice.Chance(10) {
			e.applyUpTo(p, min(index, len(p.Dir.Log)))
		}
	}
}

func (e *World) applyUpTo(p *Process, index int) {
	p.Dir.commit = max(p.Dir.commit, index)
	for ; p.Applied < p.Dir.commit; p.Applied++ {
		if e.cannotRead(p, p.Applied) {
			e.Trace("etcd %s: unmarshal should never fail", p.Run.Name())
			e.exit(p)
			return
		}
		p.Members = p.Members.apply(&p.Dir.Log[p.Applied])
	}
	p.Dir.Members = p.Members
	if at := p.Dir.index(p.Applied); at > p.Dir.snapshot+p.snapshotCount {
		p.Dir.snapshot = at
	}
	if p.Leads() && p.Members.Find(p.Dir.Id) == nil {
		p.Leader = 0 // a leader that was removed steps down
	}
}

// publish lets a member say its name, which it does at every start before it serves.
func (e *World) publish(p *Process) {
	leader := e.Member(p.Dir.Lineage, p.Leader)
	if p.published || leader == nil || !leader.Leads() || leader.Members.Find(p.Dir.Id) == nil {
		return
	}
	p.published = e.Append(leader, Entry{Kind: entryPublish, member: Peer{Id: p.Dir.Id, Name: p.Dir.Name}, by: minor(p.Version)})
	p.Serves = p.Serves || p.published
}
