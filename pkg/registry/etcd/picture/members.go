// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// Members says who is a member, as each member sees it. Nothing is averaged: what is
// said differently is said to be.
func Members(p *Picture) *v1beta2.EtcdClusterMembers {
	result := &v1beta2.EtcdClusterMembers{
		ObjectMeta: p.metadata(),
		Confirmed:  p.Confirmed != nil,
		Problems:   slices.Clone(p.Problems),
		AskedAt:    metav1.NewMicroTime(p.AskedAt),
		Took:       metav1.Duration{Duration: p.Took},
	}
	for _, m := range p.members() {
		result.Members = append(result.Members, p.listed(&m))
	}
	for i := range p.Answers {
		result.Views = append(result.Views, p.view(&p.Answers[i]))
	}
	slices.SortFunc(result.Views, func(a, b v1beta2.MemberView) int { return strings.Compare(a.Member, b.Member) })
	result.Disagreements = p.disagreements(result)
	result.Agreed = len(result.Disagreements) == 0
	return result
}

func (p *Picture) listed(m *known) v1beta2.ListedMember {
	entry := v1beta2.ListedMember{
		Name:       m.Name,
		ID:         hex(m.ID),
		Listed:     m.listed,
		Role:       p.role(m),
		PeerURLs:   m.PeerURLs,
		ClientURLs: m.ClientURLs,
		Pod:        podOf(p.pod(m.Name)),
		Claim:      claimOf(p.claim(m.Name)),
	}
	if m.ID == 0 {
		return entry
	}
	for _, a := range p.answered() {
		if a.ViewErr != nil {
			continue
		}
		if slices.ContainsFunc(a.View.Members, func(other etcd.Member) bool { return other.ID == m.ID }) {
			entry.KnownBy = append(entry.KnownBy, a.Name)
		} else {
			entry.UnknownTo = append(entry.UnknownTo, a.Name)
		}
	}
	return entry
}

func (p *Picture) view(a *Answer) v1beta2.MemberView {
	view := v1beta2.MemberView{Member: a.Name}
	if a.Err != nil {
		view.Error = a.Err.Error()
		return view
	}
	view.ClusterID, view.Leader, view.Term = hex(a.Health.ClusterID), p.nameFor(a.Health.Leader), int64(a.Health.RaftTerm)
	if a.ViewErr != nil {
		view.Error = a.ViewErr.Error()
		return view
	}
	view.Members = p.described(a)
	return view
}

// described returns the members that one has in mind.
func (p *Picture) described(a *Answer) []string {
	list := make([]string, 0, len(a.View.Members))
	for _, m := range a.View.Members {
		name := m.Name
		if name == "" {
			name = nameOf(m)
		}
		text := hex(m.ID) + "=" + name
		if m.Learner {
			text += " (learner)"
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return list
}

func (p *Picture) disagreements(m *v1beta2.EtcdClusterMembers) []string {
	var list []string
	clusters, leaders := map[string][]string{}, map[string][]string{}
	for i := range m.Views {
		v := &m.Views[i]
		if v.ClusterID == "" {
			continue
		}
		clusters[v.ClusterID] = append(clusters[v.ClusterID], v.Member)
		leader := v.Leader
		if leader == "" {
			leader = "none"
		}
		leaders[leader] = append(leaders[leader], v.Member)
	}
	if len(clusters) > 1 {
		list = append(list, "cluster IDs: "+groups(clusters, ""))
	}
	if len(leaders) > 1 {
		list = append(list, "leaders: "+groups(leaders, ""))
	}
	for i := range m.Members {
		list = append(list, p.disagreement(&m.Members[i])...)
	}
	return append(list, p.roles()...)
}

// disagreement says what is wrong about one member.
func (p *Picture) disagreement(m *v1beta2.ListedMember) []string {
	var list []string
	if len(m.KnownBy) > 0 && len(m.UnknownTo) > 0 {
		list = append(list, fmt.Sprintf("member %s (%s) is known by %s and not by %s",
			m.Name, m.ID, strings.Join(m.KnownBy, " and "), strings.Join(m.UnknownTo, " and ")))
	}
	nobody := len(p.answered()) == 0
	switch {
	case m.ID != "" && !m.Listed:
		list = append(list, fmt.Sprintf("member %s (%s) is not in the list that counts", m.Name, m.ID))
	case m.ID == "" && !nobody && m.Pod != nil:
		list = append(list, "pod "+m.Name+" belongs to no member")
	case m.ID == "" && !nobody && m.Claim != nil:
		list = append(list, "claim "+m.Name+" belongs to no member")
	case m.ID != "" && m.Pod == nil && p.PodsKnown:
		list = append(list, fmt.Sprintf("member %s (%s) has no pod", m.Name, m.ID))
	}
	return list
}

// roles tells of members that some hold for voters and others for learners.
func (p *Picture) roles() []string {
	voters, learners := map[uint64][]string{}, map[uint64][]string{}
	for _, a := range p.answered() {
		for _, m := range a.View.Members {
			if m.Learner {
				learners[m.ID] = append(learners[m.ID], a.Name)
			} else {
				voters[m.ID] = append(voters[m.ID], a.Name)
			}
		}
	}
	var list []string
	for _, id := range slices.Sorted(maps.Keys(voters)) {
		if len(learners[id]) > 0 {
			list = append(list, fmt.Sprintf("member %s is a voter to %s and a learner to %s",
				p.nameFor(id), strings.Join(voters[id], " and "), strings.Join(learners[id], " and ")))
		}
	}
	return list
}
