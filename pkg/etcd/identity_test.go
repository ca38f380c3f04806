// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
)

// address is an address that leads to one server and later to another server, as that of a pod does.
type address struct {
	net.Listener
	to atomic.Pointer[string]
	// open are the connections so far.
	open chan net.Conn
}

func newAddress(t *testing.T, m *etcdtest.Member) *address {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &address{Listener: l, open: make(chan net.Conn, 100)}
	a.leadsTo(m)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := (&net.Dialer{}).DialContext(context.WithoutCancel(t.Context()), "tcp", *a.to.Load())
			if err != nil {
				_ = from.Close()
				continue
			}
			a.open <- from
			go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
			go func() { _, _ = io.Copy(from, to); _ = from.Close() }()
		}
	}()
	return a
}

func (a *address) leadsTo(m *etcdtest.Member) {
	host := strings.TrimPrefix(m.ClientURL, "http://")
	a.to.Store(&host)
}

// cut ends all connections.
func (a *address) cut() {
	for len(a.open) > 0 {
		_ = (<-a.open).Close()
	}
}

// TestNothingIsChangedInAnotherCluster: the address of a member leads to another cluster by now. Every
// request fails, and none changes anything there.
func TestNothingIsChangedInAnotherCluster(t *testing.T) {
	t.Parallel()
	ours, other := etcdtest.New(t), etcdtest.NewVoters(t, 2)
	pool := etcd.NewPool(etcd.PoolConfig{})
	t.Cleanup(pool.Close)
	self, err := ours.Client().Status(t.Context(), ours.Member("m0").Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	at := newAddress(t, ours.Member("m0"))
	endpoint := etcd.Endpoint{Name: "m0", URL: ours.Member("m0").ClientURL, Address: at.Addr().String()}
	client := pool.Client(etcd.Target{Endpoints: []etcd.Endpoint{endpoint}, ClusterIDs: []uint64{self.ClusterID}})
	if _, err := client.Status(t.Context(), endpoint); err != nil {
		t.Fatalf("our own member: %v", err)
	}
	if err := client.ProveWrite(t.Context()); err != nil {
		t.Fatalf("our own member: %v", err)
	}
	at.leadsTo(other.Member("m0"))
	at.cut()
	before := membersOf(t, other)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for { // until the connection that was cut is known to be
		if _, err := client.Status(ctx, endpoint); !errors.Is(err, etcd.ErrUnavailable) || ctx.Err() != nil {
			break
		}
	}
	for name, request := range map[string]func() error{
		"status":      func() error { _, err := client.Status(ctx, endpoint); return err },
		"own members": func() error { _, err := client.OwnMembers(ctx, endpoint); return err },
		"view":        func() error { _, err := client.View(ctx, endpoint); return err },
		"defragment":  func() error { return client.Defragment(ctx, endpoint) },
		"snapshot":    func() error { _, err := client.Snapshot(ctx, endpoint, time.Second); return err },
		"survivor":    func() error { _, err := client.SurvivorSnapshot(ctx, endpoint, time.Second); return err },
		"wrong member": func() error {
			e := endpoint
			e.MemberID = self.ID
			_, err := pool.Client(etcd.Target{}).Status(ctx, e)
			return err
		},
		"a cluster of a set": func() error {
			_, err := pool.Client(etcd.Target{ClusterIDs: []uint64{1, self.ClusterID}}).Status(ctx, endpoint)
			return err
		},
	} {
		if err := request(); !errors.Is(err, etcd.ErrOtherCluster) && !errors.Is(err, etcd.ErrOtherMember) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func() error{
		"add a learner": func() error { _, err := client.AddLearner(ctx, etcdtest.Nowhere(t)); return err },
		"add a voter":   func() error { _, err := client.AddVoter(ctx, etcdtest.Nowhere(t)); return err },
		"promote":       func() error { return client.Promote(ctx, self.ID) },
		"remove":        func() error { return client.Remove(ctx, before[1]) },
		"move leader":   func() error { return client.MoveLeader(ctx, before[1]) },
		"disarm": func() error {
			_, err := client.Disarm(ctx, etcd.Alarm{MemberID: self.ID, Type: etcd.AlarmNoSpace})
			return err
		},
		"pad the log":    func() error { return client.Pad(ctx, 10) },
		"prove a write":  func() error { return client.ProveWrite(ctx) },
		"list of alarms": func() error { _, err := client.Alarms(ctx); return err },
	} {
		if err := change(); !errors.Is(err, etcd.ErrUnavailable) || !strings.Contains(err.Error(), etcd.ErrOtherCluster.Error()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := membersOf(t, other); len(after) != len(before) {
		t.Errorf("the other cluster had members %x and has %x", before, after)
	}
}

func membersOf(t *testing.T, c *etcdtest.Cluster) []uint64 {
	t.Helper()
	list, err := c.Client().Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []uint64
	for _, m := range list.Members {
		ids = append(ids, m.ID)
	}
	return ids
}
