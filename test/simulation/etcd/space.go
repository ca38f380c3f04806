// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// space is what the members of an etcd store beside the log. The members of an etcd that takes over its
// data have the same.
type space struct {
	// used is what the database of each member holds at least.
	used int64
	// raisedBy is the ID of the member that has raised the alarm NOSPACE; 0 without an alarm.
	raisedBy uint64
}

// emptyDatabase is how large a database is at first.
const emptyDatabase = 1 << 20

// sizeOf returns the size of the database file of a member.
func (p *Process) sizeOf() int64 {
	return max(emptyDatabase+8*int64(p.Applied), p.Dir.Lineage.used, p.Dir.file)
}

// IsFull is true for a member that rejects writes by its own quota.
func (p *Process) IsFull() bool { return p.quota > 0 && p.sizeOf() >= p.quota }

// addSpace adds what a member says of its database. etcd says its quota since 3.6.
func (p *Process) addSpace(h *etcd.MemberHealth) {
	h.DBSize = p.sizeOf()
	if minor(p.Version) >= 6 && p.quota > 0 {
		h.Quota = p.quota
	}
	if by := p.Dir.Lineage.raisedBy; by != 0 {
		h.Alarms = []etcd.Alarm{{MemberID: by, Type: etcd.AlarmNoSpace}}
	}
}

// Fill lets clients write until one member is full. It raises the alarm.
func (e *World) Fill(p *Process) {
	l := p.Dir.Lineage
	if e.QuorumLeader(p) == nil {
		return
	}
	full := p
	for _, other := range e.Processes {
		if other.Dir.Lineage == l && other.quota < full.quota {
			full = other
		}
	}
	l.used, l.raisedBy = max(l.used, full.quota), full.Dir.Id
	for _, d := range l.Dirs {
		d.file = l.used
	}
	e.Trace("etcd %s: the database has %d bytes, alarm NOSPACE", full.Run.Name(), l.used)
}

// Compact drops what the members store. Their files stay as large as they are.
func (e *World) Compact(l *Lineage) { l.used = 0 }

// Defragment makes the file of a member as small as it can be.
func (e *World) Defragment(d *DataDir) { d.file = 0 }

// RejectsWrites is true while the alarm is raised.
func (l *Lineage) RejectsWrites() bool { return l.raisedBy != 0 }

// Disarm disarms the alarm of an etcd, and returns false if it was not raised.
func (e *World) Disarm(p *Process, id uint64) (bool, error) {
	if e.QuorumLeader(p) == nil {
		return false, Rejected("disarm NOSPACE", p, etcd.ErrNoQuorum)
	}
	l := p.Dir.Lineage
	if l.raisedBy == 0 || l.raisedBy != id {
		return false, nil
	}
	l.raisedBy = 0
	return true, nil
}
