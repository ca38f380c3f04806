// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/pkg/untrusted"
)

// entry is a member of etcd's list, or a pod or PVC that looks like one.
type entry struct {
	etcd.Member
	// listed is true if it is in the effective member list.
	listed bool
}

// roster collects entries, each once. An ID tells members apart, and without an ID the
// name does.
type roster struct {
	entries []entry
	names   map[string]bool
	ids     map[uint64]bool
}

// entries returns every member, and every pod or PVC that looks like one, by name.
func (p *Probe) entries() []entry {
	r := &roster{names: map[string]bool{}, ids: map[uint64]bool{}}
	for _, m := range p.effectiveList() {
		r.add(m, true)
	}
	for i := range p.Responses {
		response := &p.Responses[i]
		for _, m := range response.View.Members {
			r.add(m, p.Confirmed == nil)
		}
		if response.Err == nil {
			r.add(etcd.Member{ID: response.Health.ID, Name: response.Name, Learner: response.Health.Learner}, false)
		}
	}
	for i := range p.Pods {
		r.add(etcd.Member{Name: p.Pods[i].Name}, false)
	}
	for i := range p.PVCs {
		r.add(etcd.Member{Name: p.PVCs[i].Name}, false)
	}
	slices.SortFunc(r.entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return r.entries
}

// maxName is how many bytes of a name are repeated. A member that another program added may have any name.
const maxName = 253

// add adds a member unless it is known.
func (r *roster) add(m etcd.Member, listed bool) {
	if m.Name = untrusted.Within(m.Name, maxName); m.Name == "" {
		m.Name = nameOf(m)
	}
	if r.names[m.Name] && m.ID != 0 && !r.ids[m.ID] {
		m.Name = hex(m.ID) // two members of one name: only the ID tells them apart
	}
	if m.ID != 0 {
		if r.ids[m.ID] {
			return
		}
		r.ids[m.ID] = true
	} else if r.names[m.Name] {
		return
	}
	r.names[m.Name] = true
	r.entries = append(r.entries, entry{Member: m, listed: listed})
}

// effectiveList returns the confirmed member list. Without one it returns the list of the
// member that is furthest ahead, and without any response that of the last status.
func (p *Probe) effectiveList() []etcd.Member {
	if p.Confirmed != nil {
		return p.Confirmed.Members
	}
	var best *Response
	for i := range p.Responses {
		r := &p.Responses[i]
		if r.Err == nil && r.ViewErr == nil && (best == nil || r.isAheadOf(best)) {
			best = r
		}
	}
	if best != nil {
		return best.View.Members
	}
	var last []etcd.Member
	for i := range p.Cluster.Status.MemberStatuses {
		m := &p.Cluster.Status.MemberStatuses[i]
		if id, err := strconv.ParseUint(m.ID, 16, 64); err == nil {
			last = append(last, etcd.Member{ID: id, Name: m.Name, Learner: m.Role == v1beta2.MemberRoleLearner})
		}
	}
	return last
}

func (r *Response) isAheadOf(other *Response) bool {
	if r.Health.RaftTerm != other.Health.RaftTerm {
		return r.Health.RaftTerm > other.Health.RaftTerm
	}
	return r.Health.Progress() > other.Health.Progress()
}

// nameOf returns the name of a member that has not started yet: its peer URL names its
// pod. A member without a pod of the cluster goes by its ID.
func nameOf(m etcd.Member) string {
	for _, url := range m.PeerURLs {
		if name, err := resources.MemberFromPeerURL(url); err == nil {
			return name
		}
	}
	return hex(m.ID)
}

// role returns the role of a member; empty for a pod or PVC that belongs to none.
func (p *Probe) role(m *entry) v1beta2.MemberRole {
	switch {
	case m.ID == 0:
		return ""
	case m.Learner:
		return v1beta2.MemberRoleLearner
	case len(m.PeerURLs) > 0 && len(m.ClientURLs) == 0:
		return v1beta2.MemberRolePending
	}
	for _, r := range p.responded() {
		if r.Health.ID == m.ID && r.Health.Leader == m.ID {
			return v1beta2.MemberRoleLeader
		}
	}
	return v1beta2.MemberRoleFollower
}

// nameForID returns the name of the member with an ID, or the ID.
func (p *Probe) nameForID(id uint64) string {
	if id == 0 {
		return ""
	}
	for _, m := range p.entries() {
		if m.ID == id {
			return m.Name
		}
	}
	return hex(id)
}

func hex(id uint64) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatUint(id, 16)
}
