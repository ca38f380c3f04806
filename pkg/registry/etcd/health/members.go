// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// DescribeMembers returns the membership as each member sees it. It merges nothing: where
// members disagree, the result says so.
func DescribeMembers(p *Probe) *v1beta2.EtcdClusterMembers {
	result := &v1beta2.EtcdClusterMembers{
		ObjectMeta: p.metadata(),
		Confirmed:  p.Confirmed != nil,
		Problems:   slices.Clone(p.Problems),
		ProbedAt:   metav1.NewMicroTime(p.ProbedAt),
		Took:       metav1.Duration{Duration: p.Took},
	}
	for _, m := range p.entries() {
		result.Members = append(result.Members, p.describe(&m))
	}
	for i := range p.Responses {
		result.Views = append(result.Views, p.view(&p.Responses[i]))
	}
	slices.SortFunc(result.Views, func(a, b v1beta2.MemberView) int { return strings.Compare(a.Member, b.Member) })
	result.Disagreements = p.disagreements(result)
	result.Agreed = len(result.Disagreements) == 0
	return result
}

func (p *Probe) describe(m *entry) v1beta2.ListedMember {
	entry := v1beta2.ListedMember{
		Name:       m.Name,
		ID:         hex(m.ID),
		Listed:     m.listed,
		Role:       p.role(m),
		PeerURLs:   m.PeerURLs,
		ClientURLs: m.ClientURLs,
		Pod:        podOf(p.pod(m.Name)),
		Claim:      pvcOf(p.pvc(m.Name)),
	}
	if m.ID == 0 {
		return entry
	}
	for _, a := range p.responded() {
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

func (p *Probe) view(a *Response) v1beta2.MemberView {
	view := v1beta2.MemberView{Member: a.Name}
	if a.Err != nil {
		view.Error = a.Err.Error()
		return view
	}
	view.ClusterID, view.Leader, view.Term = hex(a.Health.ClusterID), p.nameForID(a.Health.Leader), int64(a.Health.RaftTerm)
	if a.ViewErr != nil {
		view.Error = a.ViewErr.Error()
		return view
	}
	view.Members = p.describeView(a)
	return view
}

// describeView returns the member list of one member, as texts in a fixed order.
func (p *Probe) describeView(a *Response) []string {
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

func (p *Probe) disagreements(m *v1beta2.EtcdClusterMembers) []string {
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

// disagreement says what is wrong with one member.
func (p *Probe) disagreement(m *v1beta2.ListedMember) []string {
	var list []string
	if len(m.KnownBy) > 0 && len(m.UnknownTo) > 0 {
		list = append(list, fmt.Sprintf("member %s (%s) is known by %s and not by %s",
			m.Name, m.ID, strings.Join(m.KnownBy, " and "), strings.Join(m.UnknownTo, " and ")))
	}
	unresponsive := len(p.responded()) == 0
	switch {
	case m.ID != "" && !m.Listed:
		list = append(list, fmt.Sprintf("member %s (%s) is not in the effective member list", m.Name, m.ID))
	case m.ID == "" && !unresponsive && m.Pod != nil:
		list = append(list, "pod "+m.Name+" belongs to no member")
	case m.ID == "" && !unresponsive && m.Claim != nil:
		list = append(list, "PVC "+m.Name+" belongs to no member")
	case m.ID != "" && m.Pod == nil && p.PodsKnown:
		list = append(list, fmt.Sprintf("member %s (%s) has no pod", m.Name, m.ID))
	}
	return list
}

// roles lists the members that some members see as a voter and others as a learner.
func (p *Probe) roles() []string {
	voters, learners := map[uint64][]string{}, map[uint64][]string{}
	for _, a := range p.responded() {
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
				p.nameForID(id), strings.Join(voters[id], " and "), strings.Join(learners[id], " and ")))
		}
	}
	return list
}
