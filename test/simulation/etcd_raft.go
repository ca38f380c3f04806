// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"
)

// tickEvery is how often members talk without being asked.
const tickEvery = 500 * time.Millisecond

// tick lets every member do what time makes it do: leaders send, members without a
// leader call elections, new members say their names.
func (e *etcdWorld) tick() {
	names := e.w.resolvable()
	for _, p := range e.processes {
		p.linked = p.linked || names
	}
	for _, p := range slices.Clone(e.processes) {
		if p.leads() && e.alive(p) {
			e.lead(p)
		}
	}
	for _, p := range slices.Clone(e.processes) {
		if e.alive(p) {
			e.follow(p)
			e.stopWaiting(p)
		}
	}
	for _, r := range e.w.runs {
		r.probe()
	}
}

func (e *etcdWorld) alive(p *process) bool { return slices.Contains(e.processes, p) }

// lead sends to everybody, and steps down if too few answer.
func (e *etcdWorld) lead(p *process) {
	e.replicate(p)
	if p.leads() && e.supporters(p) < p.members.quorum() {
		p.leader = 0
	}
}

// supporters counts the voters that the leader reaches.
func (e *etcdWorld) supporters(p *process) int {
	n := 0
	for _, other := range e.processes {
		if p.members.isVoter(other.dir.id) && e.reaches(p, other) && other.leader == p.dir.id && other.dir.term == p.dir.term {
			n++
		}
	}
	return n
}

// follow is what a member does that does not lead.
func (e *etcdWorld) follow(p *process) {
	if p.leads() {
		e.publish(p)
		return
	}
	if l := e.member(p.dir.lineage, p.leader); l == nil || !l.leads() || !e.reaches(p, l) {
		if p.leader != 0 {
			p.heard, p.patience = e.w.now, e.w.dice.between(time.Second, 2*time.Second)
		}
		p.leader = 0
	}
	if e.isToldRemoved(p) {
		e.exit(p)
		return
	}
	if p.leader != 0 {
		e.publish(p)
		return
	}
	if e.w.now-p.heard >= p.patience {
		p.heard, p.patience = e.w.now, e.w.dice.between(time.Second, 2*time.Second)
		e.campaign(p, false)
	}
}

// isToldRemoved is true if a member hears from itself or from another one that it
// was removed.
func (e *etcdWorld) isToldRemoved(p *process) bool {
	return slices.ContainsFunc(e.processes, func(other *process) bool {
		return slices.Contains(other.members.removed, p.dir.id) && e.reaches(p, other)
	})
}

// exit ends a process from within.
func (e *etcdWorld) exit(p *process) {
	e.stop(p)
	p.run.exited()
}

// campaign calls an election: who has the newest log of a majority leads. A member
// that hears its leader does not vote, unless that leader is handing over.
func (e *etcdWorld) campaign(p *process, transfer bool) bool {
	if !p.members.isVoter(p.dir.id) {
		return false
	}
	votes, term := 0, p.dir.term
	var electors []*process
	for _, other := range e.processes {
		if !e.reaches(p, other) || !p.members.isVoter(other.dir.id) {
			continue
		}
		busy := other.leader != 0 && other != p && !transfer
		if !busy && p.dir.newer(other.dir) {
			votes++
			electors = append(electors, other)
		}
		term = max(term, other.dir.term)
	}
	if votes < p.members.quorum() {
		return false
	}
	for _, other := range electors {
		other.dir.term = term + 1
	}
	e.w.trace("etcd %s leads in term %d with %d entries", p.run.name, term+1, len(p.dir.log))
	p.leader, p.match = p.dir.id, map[uint64]int{}
	e.w.checks.elected(p)
	e.append(p, entry{kind: entryEmpty})
	return true
}

// append adds an entry to the leader's log and sends it. It is true if the entry was
// committed.
func (e *etcdWorld) append(p *process, new entry) bool {
	new.term = p.dir.term
	if v := minor(p.version); new.by == 0 || v < new.by {
		new.by = v
	}
	if n := len(p.dir.log); n > 0 {
		new.extra += p.dir.log[n-1].extra
	}
	p.dir.log = append(p.dir.log, new)
	index := len(p.dir.log)
	e.replicate(p)
	return p.dir.commit >= index && p.dir.log[index-1].term == new.term
}

// replicate sends the leader's log to everybody it reaches, and commits.
func (e *etcdWorld) replicate(leader *process) {
	leader.match[leader.dir.id] = len(leader.dir.log)
	for _, p := range slices.Clone(e.processes) {
		if p == leader || !e.reaches(leader, p) || leader.members.find(p.dir.id) == nil || !e.alive(p) {
			continue
		}
		if p.dir.term > leader.dir.term {
			leader.leader = 0
			return
		}
		e.send(leader, p)
	}
	e.commit(leader)
}

// send brings one member up to date.
func (e *etcdWorld) send(leader, p *process) {
	p.dir.term, p.leader, p.heard = leader.dir.term, leader.dir.id, e.w.now
	if known := min(leader.match[p.dir.id], leader.dir.commit); len(p.dir.log) < known {
		// The member has forgotten what it had acknowledged; raft panics.
		e.w.trace("etcd %s: tocommit(%d) is out of range [lastIndex(%d)]", p.run.name, known, len(p.dir.log))
		e.exit(p)
		return
	}
	same := commonPrefix(leader.dir.log, p.dir.log)
	if same < p.dir.commit {
		e.w.checks.violated("S1", "member %s had committed %d entries and the leader %s has other ones from %d on", p.run.name, p.dir.commit, leader.run.name, same)
	}
	end := len(leader.dir.log)
	if e.slow > 0 && end-same > e.slow {
		end = same + e.slow
	}
	if end > same || len(p.dir.log) > same {
		p.dir.log = append(p.dir.log[:same], leader.dir.log[same:end]...)
	}
	leader.match[p.dir.id] = len(p.dir.log)
	e.applyUpTo(p, min(leader.dir.commit, len(p.dir.log)))
}

// commonPrefix looks from the end, because logs mostly agree.
func commonPrefix(a, b []entry) int {
	n := min(len(a), len(b))
	for n > 0 && a[n-1].term != b[n-1].term {
		n--
	}
	return n
}

// commit finds what a majority has.
func (e *etcdWorld) commit(leader *process) {
	var matches []int
	for i := range leader.members.peers {
		if p := &leader.members.peers[i]; !p.learner {
			matches = append(matches, leader.match[p.id])
		}
	}
	if len(matches) == 0 {
		return
	}
	slices.Sort(matches)
	index := matches[len(matches)-leader.members.quorum()]
	if index <= leader.dir.commit || leader.dir.log[index-1].term != leader.dir.term {
		return
	}
	e.applyUpTo(leader, index)
	leader.dir.lineage.members = leader.members
	for _, p := range slices.Clone(e.processes) {
		if p != leader && p.leader == leader.dir.id && e.reaches(leader, p) && !e.w.dice.chance(10) {
			e.applyUpTo(p, min(index, len(p.dir.log)))
		}
	}
}

func (e *etcdWorld) applyUpTo(p *process, index int) {
	p.dir.commit = max(p.dir.commit, index)
	for ; p.applied < p.dir.commit; p.applied++ {
		if e.cannotRead(p, p.applied) {
			e.w.trace("etcd %s: unmarshal should never fail", p.run.name)
			e.exit(p)
			return
		}
		p.members = p.members.apply(&p.dir.log[p.applied])
	}
	p.dir.members = p.members
	if at := p.dir.index(p.applied); at > p.dir.snapshot+p.snapshotCount {
		p.dir.snapshot = at
	}
	if p.leads() && p.members.find(p.dir.id) == nil {
		p.leader = 0 // a leader that was removed steps down
	}
}

// publish lets a member say its name, which it does at every start before it serves.
func (e *etcdWorld) publish(p *process) {
	leader := e.member(p.dir.lineage, p.leader)
	if p.published || leader == nil || !leader.leads() || leader.members.find(p.dir.id) == nil {
		return
	}
	p.published = e.append(leader, entry{kind: entryPublish, member: peer{id: p.dir.id, name: p.dir.name}, by: minor(p.version)})
	p.serves = p.serves || p.published
}

// readyTimeout is how long a member of 3.5 or later waits before it serves without
// having said its name.
const readyTimeout = 5 * time.Second

func (e *etcdWorld) stopWaiting(p *process) {
	if !p.strict && e.w.now-p.started >= readyTimeout && len(p.members.peers) > 0 {
		p.serves = true
	}
}
