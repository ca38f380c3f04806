// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Lists is true if some etcd has a member with a name.
func (e *World) Lists(name string) bool {
	for _, l := range e.Lineages {
		for i := range l.Members.Peers {
			if strings.Contains(l.Members.Peers[i].Url, "//"+name+".") {
				return true
			}
		}
	}
	return false
}

// QuorumServes is true if a quorum of an etcd is there.
func (e *World) QuorumServes(l *Lineage) bool {
	live := 0
	for i := range l.Members.Peers {
		m := &l.Members.Peers[i]
		if m.Learner {
			continue
		}
		if p := e.Member(l, m.Id); p != nil && !p.Dir.Doomed && p.Leader != 0 && !p.Stuck && !p.Dir.Hung && !e.Upgrading[p.Run.UID()] {
			live++
		}
	}
	return live >= l.Members.Quorum()
}

// AwaitsSecondVoter is true for an etcd that knows no learners and has just been given its
// second member: until that has started there is no quorum, whatever one does.
func (l *Lineage) AwaitsSecondVoter() bool {
	return l.Members.Voters() == 2 && l.Members.Unsettled() == 1 && l.Members.Peers[0].Learner == l.Members.Peers[1].Learner && !l.learners
}

// Remains is true if any data of an etcd is left.
func (l *Lineage) Remains() bool {
	for _, id := range l.Order {
		if d := l.Dirs[id]; !d.Doomed && !d.Destroyed {
			return true
		}
	}
	return false
}

// VoterRemains is true if the data of a voter is left.
func (l *Lineage) VoterRemains() bool {
	for i := range l.Members.Peers {
		m := &l.Members.Peers[i]
		if d := l.Dirs[m.Id]; !m.Learner && d != nil && !d.Doomed && !d.Destroyed {
			return true
		}
	}
	return false
}

// IdOf returns the member whose data a PVC holds.
func (e *World) IdOf(pvc metav1.Object) uint64 {
	if d := e.PVCs[string(pvc.GetUID())]; d != nil {
		return d.Id
	}
	return 0
}

// IsHidden is true while the controllers reach no member in a pod.
func (e *World) IsHidden(r Container) bool {
	return e.Unreachable[r.Name()] || r.IsSevered() || e.isDeaf(r)
}

// ForAPerson is true for data that only a user may delete: it is wiped, or it is damaged and
// its member votes.
func (d *DataDir) ForAPerson() bool {
	return d.Wiped && d.IsEmpty() || d.Damaged && d.Lineage != nil && d.Lineage.Members.IsVoter(d.Id)
}
