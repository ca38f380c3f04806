// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Picture is what was found out about a cluster at one time.
type Picture struct {
	// Cluster as it is stored.
	Cluster *v1beta2.EtcdCluster
	// AskedAt is when the members were asked, Took how long that took.
	AskedAt time.Time
	Took    time.Duration
	// Pods and Claims of exactly this cluster. PodsKnown is false if the pods could not
	// be read.
	Pods      []corev1.Pod
	PodsKnown bool
	Claims    []corev1.PersistentVolumeClaim
	// Answers of the members that were asked.
	Answers []Answer
	// Confirmed is a member list that a quorum confirmed meanwhile; nil if none did,
	// and ConfirmErr then says why.
	Confirmed  *etcd.Membership
	ConfirmErr error
	// ClientCertificateExpiry is when the certificate ends with which the members were
	// asked; zero without TLS.
	ClientCertificateExpiry time.Time
	// CertificateErr is why the members could not be asked with a client certificate; nil if
	// they were, and without TLS.
	CertificateErr error
	// Problems tells what could not be found out.
	Problems []string
}

// Asked reports whether the members could be asked at all. If not, no answer means nothing.
func (p *Picture) Asked() bool { return p.CertificateErr == nil }

// Answer is what one member said.
type Answer struct {
	// Name of the member's pod.
	Name string
	// Health is what it says of itself, or Err why it said nothing.
	Health etcd.MemberHealth
	Err    error
	// View is the member list that it has in memory, or ViewErr why there is none.
	View    etcd.Membership
	ViewErr error
	// Took is how long the answer took.
	Took time.Duration
}

// known is a member of etcd's list, or a pod or claim that looks like one.
type known struct {
	etcd.Member
	// listed is true if it is in the list that counts.
	listed bool
}

// list returns the member list that counts: the confirmed one; without one, that of
// the member that answered and is furthest ahead; without any, the last status.
func (p *Picture) list() []etcd.Member {
	if p.Confirmed != nil {
		return p.Confirmed.Members
	}
	var best *Answer
	for i := range p.Answers {
		a := &p.Answers[i]
		if a.Err == nil && a.ViewErr == nil && (best == nil || a.ahead(best)) {
			best = a
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

func (a *Answer) ahead(b *Answer) bool {
	if a.Health.RaftTerm != b.Health.RaftTerm {
		return a.Health.RaftTerm > b.Health.RaftTerm
	}
	return a.Health.Progress() > b.Health.Progress()
}

// members returns everything that is a member, or looks like one, by name.
func (p *Picture) members() []known {
	var all []known
	names, ids := map[string]bool{}, map[uint64]bool{}
	add := func(m etcd.Member, listed bool) {
		if m.Name == "" {
			m.Name = nameOf(m)
		}
		if names[m.Name] && m.ID != 0 && !ids[m.ID] {
			m.Name = hex(m.ID) // two members of one name: only the ID tells them apart
		}
		if m.ID != 0 {
			if ids[m.ID] {
				return
			}
			ids[m.ID] = true
		} else if names[m.Name] {
			return
		}
		names[m.Name] = true
		all = append(all, known{Member: m, listed: listed})
	}
	for _, m := range p.list() {
		add(m, true)
	}
	for i := range p.Answers {
		a := &p.Answers[i]
		for _, m := range a.View.Members {
			add(m, p.Confirmed == nil)
		}
		if a.Err == nil {
			add(etcd.Member{ID: a.Health.ID, Name: a.Name, Learner: a.Health.Learner}, false)
		}
	}
	for i := range p.Pods {
		add(etcd.Member{Name: p.Pods[i].Name}, false)
	}
	for i := range p.Claims {
		add(etcd.Member{Name: p.Claims[i].Name}, false)
	}
	slices.SortFunc(all, func(a, b known) int {
		if order := cmp.Compare(a.Name, b.Name); order != 0 {
			return order
		}
		return cmp.Compare(a.ID, b.ID)
	})
	return all
}

// nameOf returns the name of a member that has not started yet: its peer URL tells
// which pod it is meant for. Somebody else's member goes by its ID.
func nameOf(m etcd.Member) string {
	for _, url := range m.PeerURLs {
		if name, err := resources.MemberFromPeerURL(url); err == nil {
			return name
		}
	}
	return hex(m.ID)
}

// answer returns what the member said, or nil if it was not asked.
func (p *Picture) answer(m *known) *Answer {
	for i := range p.Answers {
		a := &p.Answers[i]
		if a.Err == nil && m.ID != 0 && a.Health.ID == m.ID {
			return a
		}
	}
	for i := range p.Answers {
		a := &p.Answers[i]
		if a.Name == m.Name && (a.Err != nil || m.ID == 0) {
			return a
		}
	}
	return nil
}

// role returns what a member is; empty for what is no member.
func (p *Picture) role(m *known) v1beta2.MemberRole {
	switch {
	case m.ID == 0:
		return ""
	case m.Learner:
		return v1beta2.MemberRoleLearner
	case len(m.PeerURLs) > 0 && len(m.ClientURLs) == 0:
		return v1beta2.MemberRolePending
	}
	for _, a := range p.answered() {
		if a.Health.ID == m.ID && a.Health.Leader == m.ID {
			return v1beta2.MemberRoleLeader
		}
	}
	return v1beta2.MemberRoleFollower
}

// answered returns the answers of members that said something.
func (p *Picture) answered() []*Answer {
	var list []*Answer
	for i := range p.Answers {
		if p.Answers[i].Err == nil {
			list = append(list, &p.Answers[i])
		}
	}
	return list
}

func (p *Picture) pod(name string) *corev1.Pod {
	for i := range p.Pods {
		if p.Pods[i].Name == name {
			return &p.Pods[i]
		}
	}
	return nil
}

func (p *Picture) claim(name string) *corev1.PersistentVolumeClaim {
	for i := range p.Claims {
		if p.Claims[i].Name == name {
			return &p.Claims[i]
		}
	}
	return nil
}

// nameFor returns the name of the member with an ID, or the ID.
func (p *Picture) nameFor(id uint64) string {
	if id == 0 {
		return ""
	}
	for _, m := range p.members() {
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

func (p *Picture) metadata() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:              p.Cluster.Name,
		Namespace:         p.Cluster.Namespace,
		UID:               p.Cluster.UID,
		ResourceVersion:   p.Cluster.ResourceVersion,
		CreationTimestamp: p.Cluster.CreationTimestamp,
	}
}

// Wavers is true for a picture that may look otherwise in a moment: members that
// answered follow different leaders, or some follow none while others do, or their
// lists differ.
func Wavers(p *Picture) bool {
	leaders, lists := map[uint64]bool{}, map[string]bool{}
	for _, a := range p.answered() {
		leaders[a.Health.Leader] = true
		if a.ViewErr == nil {
			lists[strings.Join(p.described(a), ",")] = true
		}
	}
	return len(leaders) > 1 || len(lists) > 1
}
