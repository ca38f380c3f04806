// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// entryKind is what an entry of the log is about.
type entryKind byte

// Values of entryKind.
const (
	EntryEmpty entryKind = iota
	EntryWrite
	entryAddVoter
	entryAddLearner
	entryPromote
	entryRemove
	entryPublish
)

// Entry is one entry of the raft log.
type Entry struct {
	term uint64
	Kind entryKind
	// Write is the number of a client's write.
	Write int
	// by is the minor version of the member that has written it; 0 if every version can
	// read it.
	by uint
	// Extra counts the entries up to this entry that are not kept one by one.
	Extra uint64
	// member is the subject of a change of the membership, or of the name that a member
	// publishes at its first start.
	member Peer
}

func (e *Entry) changesMembership() bool {
	switch e.Kind {
	case entryAddVoter, entryAddLearner, entryPromote, entryRemove:
		return true
	case EntryEmpty, EntryWrite, entryPublish:
		return false
	default:
		return false
	}
}

// Peer is one member of etcd's list.
type Peer struct {
	Id      uint64
	Name    string
	Url     string
	Learner bool
	// Promoted is true for a voter that began as a learner. Etcd 3.3 has none.
	Promoted bool
	// Since is the lowest version of the members when this member was added. Until this member
	// has started, etcd does not raise the version of the cluster: that takes a response from
	// every member.
	Since *version.Version
}

// Membership is the member list after some entries were applied. It is replaced, not
// changed, so that copies may be kept.
type Membership struct {
	Peers   []Peer
	removed []uint64
}

// Find returns the member with an ID, or nil.
func (m *Membership) Find(id uint64) *Peer {
	for i := range m.Peers {
		if m.Peers[i].Id == id {
			return &m.Peers[i]
		}
	}
	return nil
}

// ByURL returns the member with a peer URL, or nil.
func (m *Membership) ByURL(url string) *Peer {
	for i := range m.Peers {
		if m.Peers[i].Url == url {
			return &m.Peers[i]
		}
	}
	return nil
}

// IsPromoted is true if the list has a voter with an ID that began as a learner.
func (m *Membership) IsPromoted(id uint64) bool {
	p := m.Find(id)
	return p != nil && p.Promoted
}

// IsVoter is true if the list has a voter with an ID.
func (m *Membership) IsVoter(id uint64) bool {
	p := m.Find(id)
	return p != nil && !p.Learner
}

// Voters counts the voters.
func (m *Membership) Voters() int {
	n := 0
	for i := range m.Peers {
		if !m.Peers[i].Learner {
			n++
		}
	}
	return n
}

// Quorum is how many voters decide.
func (m *Membership) Quorum() int { return m.Voters()/2 + 1 }

// Unsettled counts learners and members that have not started.
func (m *Membership) Unsettled() int {
	n := 0
	for i := range m.Peers {
		if m.Peers[i].Learner || m.Peers[i].Name == "" {
			n++
		}
	}
	return n
}

// apply returns the list after an entry.
func (m *Membership) apply(e *Entry) *Membership {
	if !e.changesMembership() && e.Kind != entryPublish {
		return m
	}
	next := &Membership{Peers: slices.Clone(m.Peers), removed: m.removed}
	i := slices.IndexFunc(next.Peers, func(p Peer) bool { return p.Id == e.member.Id })
	switch {
	case (e.Kind == entryAddVoter || e.Kind == entryAddLearner) && i < 0:
		added := e.member
		added.Learner = e.Kind == entryAddLearner
		next.Peers = append(next.Peers, added)
		slices.SortFunc(next.Peers, func(a, b Peer) int {
			if a.Id < b.Id {
				return -1
			}
			return 1
		})
	case e.Kind == entryPromote && i >= 0:
		next.Peers[i].Learner, next.Peers[i].Promoted = false, true
	case e.Kind == entryPublish && i >= 0:
		next.Peers[i].Name = e.member.Name
	case e.Kind == entryRemove && i >= 0:
		next.Peers = slices.Delete(next.Peers, i, i+1)
		next.removed = append(slices.Clone(next.removed), e.member.Id)
	}
	return next
}

// told is the list as a member tells it.
func (m *Membership) told(by *Process) etcd.Membership {
	list := etcd.Membership{ClusterID: by.Dir.Lineage.ClusterID, From: by.Dir.Id, RaftTerm: by.Dir.Term}
	for i := range m.Peers {
		peer := &m.Peers[i]
		list.Members = append(list.Members, etcd.Member{ID: peer.Id, Name: peer.Name, PeerURLs: []string{peer.Url}, Learner: peer.Learner})
	}
	return list
}

// DescribeMembers names the members of a list for a reader.
func DescribeMembers(m *Membership) string {
	s := ""
	for i := range m.Peers {
		p := &m.Peers[i]
		switch {
		case p.Name == "":
			s += fmt.Sprintf(" (%x)", p.Id)
		default:
			s += " " + p.Name
		}
		if p.Learner {
			s += "/learner"
		}
	}
	return "members" + s
}
