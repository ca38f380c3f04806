// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

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
	m := DescribeMembers(healthy(3))
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
		change func(*Probe)
		says   string
	}{
		{"one does not know another", func(p *Probe) {
			p.Responses[2].View = etcd.Membership{Members: p.Confirmed.Members[1:]}
		}, "member m0 (1) is known by m0 and m1 and not by m2"},
		{"one does not know the leader", func(p *Probe) { p.Responses[2].Health.Leader = 0 }, "leaders: m0 and m1: m0; m2: none"},
		{"one belongs to another cluster", func(p *Probe) { p.Responses[2].Health.ClusterID = 7 }, "cluster IDs: m2: 7; m0 and m1: c1"},
		{"one was removed and runs", func(p *Probe) {
			p.Confirmed = &etcd.Membership{ClusterID: 0xc1, Members: p.Confirmed.Members[:2]}
			p.Responses[0].View, p.Responses[1].View = *p.Confirmed, *p.Confirmed
		}, "member m2 (3) is not in the effective member list"},
		{"a pod is no member", func(p *Probe) { p.Pods = append(p.Pods, pod("stray")) }, "pod stray belongs to no member"},
		{"a PVC is no member", func(p *Probe) {
			p.PVCs = append(p.PVCs, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "old"}})
		}, "PVC old belongs to no member"},
		{"a member has no pod", func(p *Probe) { p.loseAllBut(0, 1) }, "member m2 (3) has no pod"},
		{"one is a learner to some", func(p *Probe) {
			view := etcd.Membership{Members: slices.Clone(p.Confirmed.Members)}
			view.Members[2].Learner = true
			p.Responses[1].View = view
		}, "member m2 is a voter to m0 and m2 and a learner to m1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := healthy(3)
			test.change(p)
			m := DescribeMembers(p)
			if m.Agreed || !strings.Contains(strings.Join(m.Disagreements, "\n"), test.says) {
				t.Errorf("agreed %t, %q; want %q", m.Agreed, m.Disagreements, test.says)
			}
		})
	}
}

// A learner does not return a member list; that is no disagreement.
func TestMembersOfALearner(t *testing.T) {
	t.Parallel()
	p := healthy(3)
	p.Responses[2].View, p.Responses[2].ViewErr = etcd.Membership{}, etcd.ErrLearner
	if m := DescribeMembers(p); !m.Agreed || m.Views[2].Error == "" {
		t.Errorf("unexpected %+v", m)
	}
}

// Without a quorum and without a response, only the last status names the members.
func TestMembersOfAnUnresponsiveCluster(t *testing.T) {
	t.Parallel()
	p := healthy(3)
	p.Confirmed = nil
	for i := range p.Responses {
		p.unresponsive(i)
	}
	m := DescribeMembers(p)
	if len(m.Members) != 3 || m.Members[0].ID != "1" || m.Confirmed {
		t.Errorf("unexpected %+v", m)
	}
}
