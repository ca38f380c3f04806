// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"errors"
	"strconv"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// TestProbeOfAnotherCluster: the address of a member leads to another etcd than the status names.
func TestProbeOfAnotherCluster(t *testing.T) {
	t.Parallel()
	s := newSubject(t, 1)
	report := func(id uint64) {
		s.cluster.Status.MemberStatuses = []v1beta2.MemberStatus{{Name: "m0", ID: strconv.FormatUint(id, 16)}, {Name: "9", ID: "9", Unmanaged: true}}
	}
	report(s.etcd.Member("m0").ID())
	if p := s.probe(); p.Confirmed == nil || p.Responses[0].Err != nil {
		t.Fatalf("our own member: %v, %+v", p.ConfirmErr, p.Responses)
	}
	report(1)
	p := s.probe()
	if err := p.Responses[0].Err; !errors.Is(err, etcd.ErrOtherMember) || p.Confirmed != nil {
		t.Errorf("another member responds: %v; confirmed %+v", err, p.Confirmed)
	}
	found, err := s.prober.Discover(t.Context(), s.cluster)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.prober.Client(found).MoveLeader(t.Context(), 1); !errors.Is(err, etcd.ErrUnavailable) {
		t.Errorf("the leadership is moved in another cluster: %v", err)
	}
	if _, err := s.prober.Client(found).Snapshot(t.Context(), found.Target.Endpoints[0], 1e9); !errors.Is(err, etcd.ErrOtherMember) {
		t.Errorf("a snapshot of another cluster: %v", err)
	}
	if byName := endpointsByName(s.cluster); len(byName) != 1 || byName[0].MemberID != 1 {
		t.Errorf("the endpoints by name are %+v", byName)
	}
}
