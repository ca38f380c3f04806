// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import "time"

// Process is a running etcd.
type Process struct {
	Run     Container
	Dir     *DataDir
	Version string
	strict  bool
	// deaf is true for an etcd that controllers do not reach, because of its declaration.
	deaf bool
	// verifies is true for an etcd that accepts no peer, because it looks up the names of peers.
	verifies bool
	// snapshotCount is after how many entries it makes a snapshot.
	snapshotCount uint64
	// quota is the size of its database at which it rejects writes.
	quota int64
	// Members is the list as far as this member has applied the log.
	Members *Membership
	Applied int
	Leader  uint64
	// heard is when it last heard of a leader, and patience how long it waits for one.
	heard    time.Duration
	patience time.Duration
	// linked is true once the others can resolve its name.
	linked bool
	// published is true once the others have heard its name. Serves is true once it responds
	// to clients, which is at the same time: a member that starts without a quorum never
	// responds.
	published, Serves bool
	Started           time.Duration
	// Trust holds the CAs that were read at the start, by the name of the secret.
	Trust map[string][]byte
	// match is what a leader knows of the others' logs.
	match map[uint64]int
	// Stuck is true while it waits for its disk. It says and hears nothing among the members,
	// and still responds from memory what it knew before.
	Stuck bool
}

// writes is true if what a process must write reaches its disk.
func (p *Process) writes() bool {
	p.Stuck = p.Stuck || p.Dir.Hung
	return !p.Stuck
}

// Hang lets the disk of a directory take no writes until it is resumed.
func (e *World) Hang(d *DataDir) { d.Hung = true }

// Resume lets the disk of a directory take writes again.
func (e *World) Resume(d *DataDir) {
	d.Hung = false
	for _, p := range e.Processes {
		if p.Dir == d {
			p.Stuck = false
		}
	}
}

// ResumeAll lets all disks take writes again.
func (e *World) ResumeAll() {
	for _, l := range e.Lineages {
		for _, id := range l.Order {
			e.Resume(l.Dirs[id])
		}
	}
}

// Leads is true for a member that takes itself for the leader.
func (p *Process) Leads() bool { return p.Leader == p.Dir.Id }

// Serving returns the process that serves clients under an address.
func (e *World) Serving(ip string) *Process {
	if p := e.ByIP(ip); p != nil && p.Serves {
		return p
	}
	return nil
}

// ByIP returns the process that runs under an address.
func (e *World) ByIP(ip string) *Process {
	for _, p := range e.Processes {
		if p.Run.IP() == ip {
			return p
		}
	}
	return nil
}

// Member returns the process of a member of a lineage.
func (e *World) Member(l *Lineage, id uint64) *Process {
	for _, p := range e.Processes {
		if p.Dir.Lineage == l && p.Dir.Id == id {
			return p
		}
	}
	return nil
}

// Pair is the key of two pods in Cut.
func Pair(a, b string) [2]string {
	if a > b {
		a, b = b, a
	}
	return [2]string{a, b}
}

func (e *World) isCut(a, b string) bool { return e.Cut[Pair(a, b)] }

// reaches is true if two members can talk.
func (e *World) reaches(a, b *Process) bool {
	return a == b || (a.Dir.Lineage == b.Dir.Lineage && !a.Stuck && !b.Stuck && !a.verifies && !b.verifies && a.linked && b.linked && !e.isCut(a.Run.Name(), b.Run.Name()) && a.Run.IsSevered() == b.Run.IsSevered() &&
		!e.Network.Rejects(a, b) && !e.Network.Rejects(b, a))
}
