// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/version"
)

// After how many entries etcd makes a snapshot by default, before 3.6 and since,
// and how many entries a leader keeps in memory behind what it has applied.
const (
	oldSnapshotCount = 100000
	newSnapshotCount = 10000
	catchUpEntries   = 5000
)

// minors holds the minor version of each version that was parsed before.
var minors sync.Map

func minor(v string) uint {
	if known, found := minors.Load(v); found {
		return known.(uint)
	}
	m := parseMinor(v)
	minors.Store(v, m)
	return m
}

func parseMinor(v string) uint {
	parsed, err := version.ParseSemantic(v)
	if err != nil {
		return 0
	}
	return parsed.Minor()
}

// LowestVersion is the lowest version that last ran on the data of a member; nil if no member has
// started.
func (l *Lineage) LowestVersion() *version.Version {
	var low *version.Version
	for _, id := range l.Order {
		v, err := version.ParseSemantic(l.Dirs[id].Version)
		if err == nil && l.Members.Find(id) != nil && (low == nil || v.LessThan(low)) {
			low = v
		}
	}
	return low
}

// LowestVersionFor is the lowest version that a member finds when it starts: at its first start
// that is the version from when it was added, if the others have stepped up since.
func (l *Lineage) LowestVersionFor(d *DataDir) *version.Version {
	low, m := l.LowestVersion(), l.Members.Find(d.Id)
	if low != nil && d.Version == "" && m != nil && m.Since != nil && m.Since.LessThan(low) {
		return m.Since
	}
	return low
}

func before36(v string) bool { return minor(v) < 6 }

// reads is true if a version can read an entry: from 3.6 on only what the version before
// it and later ones have written.
func reads(v string, e *Entry) bool {
	return e.by == 0 || before36(v) || e.by+1 >= minor(v)
}

func defaultSnapshotCount(v string) uint64 {
	if before36(v) {
		return oldSnapshotCount
	}
	return newSnapshotCount
}

// holdsUnreadable is true if the log on a disk has, behind the last snapshot, what a
// version cannot read: it reads that when it starts.
func (d *DataDir) holdsUnreadable(v string) bool {
	for i := range d.commit {
		if !reads(v, &d.Log[i]) && d.index(i+1) > d.snapshot {
			return true
		}
	}
	return false
}

// cannotRead is true if a member comes upon an entry, as the leader has sent it, that it
// cannot read. What the leader does not keep in memory any more came as a snapshot.
func (e *World) cannotRead(p *Process, i int) bool {
	if reads(p.Version, &p.Dir.Log[i]) {
		return false
	}
	leader := e.Member(p.Dir.Lineage, p.Leader)
	if leader == nil || leader.Dir.index(leader.Applied) < p.Dir.index(i+1)+catchUpEntries {
		return true
	}
	p.Dir.snapshot = max(p.Dir.snapshot, p.Dir.index(i+1))
	return false
}
