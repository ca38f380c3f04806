// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

func TestMembersAgree(t *testing.T) {
	t.Parallel()
	m := Members(healthy(3))
	if !m.Agreed || !m.Confirmed || len(m.Members) != 3 || len(m.Views) != 3 {
		t.Fatalf("unexpected %+v", m)
	}
	first := m.Members[0]
	if first.Role != v1beta2.MemberRoleLeader || !first.Listed || first.Pod == nil || first.Claim == nil ||
		!slices.Equal(first.KnownBy, []string{"m0", "m1", "m2"}) || len(first.UnknownTo) != 0 {
		t.Errorf("unexpected %+v", first)
	}
	if !slices.Equal(m.Views[2].Members, []string{"1=m0", "2=m1", "3=m2"}) || m.Views[2].Leader != "m0" {
		t.Errorf("unexpected %+v", m.Views[2])
	}
}

func TestMembersDisagree(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(*Picture)
		says   string
	}{
		{"one does not know another", func(p *Picture) {
			p.Answers[2].View = etcd.Membership{Members: p.Confirmed.Members[1:]}
		}, "member m0 (1) is known by m0 and m1 and not by m2"},
		{"one does not know the leader", func(p *Picture) { p.Answers[2].Health.Leader = 0 }, "leaders: m0 and m1: m0; m2: none"},
		{"one belongs to another cluster", func(p *Picture) { p.Answers[2].Health.ClusterID = 7 }, "cluster IDs: m2: 7; m0 and m1: c1"},
		{"one was removed and runs", func(p *Picture) {
			p.Confirmed = &etcd.Membership{ClusterID: 0xc1, Members: p.Confirmed.Members[:2]}
			p.Answers[0].View, p.Answers[1].View = *p.Confirmed, *p.Confirmed
		}, "member m2 (3) is not in the list that counts"},
		{"a pod is no member", func(p *Picture) { p.Pods = append(p.Pods, pod("stray")) }, "pod stray belongs to no member"},
		{"a claim is no member", func(p *Picture) {
			p.Claims = append(p.Claims, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "old"}})
		}, "claim old belongs to no member"},
		{"a member has no pod", func(p *Picture) { p.gone(0, 1) }, "member m2 (3) has no pod"},
		{"one is a learner to some", func(p *Picture) {
			view := etcd.Membership{Members: slices.Clone(p.Confirmed.Members)}
			view.Members[2].Learner = true
			p.Answers[1].View = view
		}, "member m2 is a voter to m0 and m2 and a learner to m1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := healthy(3)
			test.change(p)
			m := Members(p)
			if m.Agreed || !strings.Contains(strings.Join(m.Disagreements, "\n"), test.says) {
				t.Errorf("agreed %t, %q; want %q", m.Agreed, m.Disagreements, test.says)
			}
		})
	}
}

// A learner tells nobody who the members are; that is no disagreement.
func TestMembersOfALearner(t *testing.T) {
	t.Parallel()
	p := healthy(3)
	p.Answers[2].View, p.Answers[2].ViewErr = etcd.Membership{}, etcd.ErrLearner
	if m := Members(p); !m.Agreed || m.Views[2].Error == "" {
		t.Errorf("unexpected %+v", m)
	}
}

// Without a quorum and without an answer, the last status is all there is.
func TestMembersOfASilentCluster(t *testing.T) {
	t.Parallel()
	p := healthy(3)
	p.Confirmed = nil
	for i := range p.Answers {
		p.silent(i)
	}
	m := Members(p)
	if len(m.Members) != 3 || m.Members[0].ID != "1" || m.Confirmed {
		t.Errorf("unexpected %+v", m)
	}
}
