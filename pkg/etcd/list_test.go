// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestMembersWhileDisksHang: the disks of two voters take no writes. They respond with their
// status, sooner than the busy third voter, and complete no read. The list comes from the third: each
// further try would begin with one of the two again.
func TestMembersWhileDisksHang(t *testing.T) {
	t.Parallel()
	for _, reported := range []bool{false, true} {
		t.Run(fmt.Sprintf("reported=%v", reported), func(t *testing.T) {
			t.Parallel()
			p := NewPool(PoolConfig{})
			defer p.Close()
			serving := &fakeServer{version: "3.6.16", late: 2 * leaderGrace}
			target := Target{Endpoints: []Endpoint{
				(&fakeServer{version: "3.6.16", hangs: true}).serve(t, "a"),
				(&fakeServer{version: "3.6.16", hangs: true}).serve(t, "b"),
				serving.serve(t, "c"),
			}}
			if reported {
				target.Endpoints[0].Status = &MemberHealth{ID: 2, Leader: 1, Version: "3.6.16"}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if m, err := p.Client(target).Members(ctx); err != nil || m.ClusterID != 7 {
				t.Errorf("%+v, %v", m, err)
			}
		})
	}
}

// TestMembersWhileAllDisksHang: without a voter that completes a read there is no quorum.
func TestMembersWhileAllDisksHang(t *testing.T) {
	t.Parallel()
	p := NewPool(PoolConfig{})
	defer p.Close()
	target := Target{Endpoints: []Endpoint{
		(&fakeServer{version: "3.6.16", hangs: true}).serve(t, "a"),
		(&fakeServer{version: "3.6.16", hangs: true}).serve(t, "b"),
	}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if m, err := p.Client(target).Members(ctx); !errors.Is(err, ErrNoQuorum) {
		t.Errorf("%+v, %v", m, err)
	}
}
