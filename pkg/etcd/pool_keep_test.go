// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	testingclock "k8s.io/utils/clock/testing"
)

// TestPoolKeepsAConnectionForEachMember: a limit below the number of members would end
// each connection before it is used again.
func TestPoolKeepsAConnectionForEachMember(t *testing.T) {
	t.Parallel()
	for _, clusters := range []int{120, 300} {
		t.Run(fmt.Sprint(clusters), func(t *testing.T) {
			t.Parallel()
			clock := testingclock.NewFakeClock(time.Unix(0, 0))
			p := NewPool(PoolConfig{Clock: clock, StatusTimeout: time.Minute})
			defer p.Close()
			var s fakeServer
			listener := s.count(t)
			targets := make([]Target, clusters)
			for i := range targets {
				for m := range 3 {
					url := fmt.Sprintf("http://c%d-%d.ns.svc:2379", i, m)
					targets[i].Endpoints = append(targets[i].Endpoints, Endpoint{Name: url, URL: url, Address: listener.Addr().String()})
				}
			}
			round := func() {
				for i, target := range targets {
					for name, response := range p.Client(target).Statuses(t.Context()) {
						if response.Err != nil {
							t.Fatalf("%s: %v", name, response.Err)
						}
					}
					p.Keep(fmt.Sprint(i), target)
				}
				clock.Step(15 * time.Second)
			}
			round()
			if dials := listener.accepted.Load(); dials != int64(3*clusters) {
				t.Fatalf("%d connections for %d members", dials, 3*clusters)
			}
			for range 8 { // two minutes, more than an unused connection is kept
				round()
			}
			if more := listener.accepted.Load() - int64(3*clusters); more != 0 || p.Len() != 3*clusters {
				t.Errorf("%d connections were made at rest; %d are kept for %d members", more, p.Len(), 3*clusters)
			}
			for i := range targets {
				p.Keep(fmt.Sprint(i))
			}
			if p.Len() != 0 || len(p.kept) != 0 {
				t.Errorf("%d connections of %d owners are kept of clusters that no longer exist", p.Len(), len(p.kept))
			}
		})
	}
}

// counting counts the connections that it accepts.
type counting struct {
	net.Listener
	accepted atomic.Int64
}

func (l *counting) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return conn, err
}

// count starts a server whose connections are counted.
func (f *fakeServer) count(t *testing.T) *counting {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := &counting{Listener: l}
	f.serveOn(t, listener)
	return listener
}

// TestPoolReleasesWhatIsNotKept: connections to members that no longer exist, or with certificates
// that were replaced, end at once; one that is used ends with its last call.
func TestPoolReleasesWhatIsNotKept(t *testing.T) {
	t.Parallel()
	p := NewPool(PoolConfig{})
	defer p.Close()
	var s fakeServer
	a, b, others := s.serve(t, "a"), s.serve(t, "b"), s.serve(t, "others")
	both, old := Target{Endpoints: []Endpoint{a, b}, TLSIdentity: "1"}, Target{Endpoints: []Endpoint{others}}
	for _, e := range both.Endpoints {
		ask(t, p, both, e)
	}
	ask(t, p, old, others)
	p.Keep("c", both)
	p.Keep("others", old)
	used, err := p.acquire(both, b)
	if err != nil {
		t.Fatal(err)
	}

	p.Keep("c", Target{Endpoints: []Endpoint{a}, TLSIdentity: "1"})
	if p.Len() != 2 || p.conns[keyOf(both, b)] != nil {
		t.Errorf("the connection to a member that no longer exists is kept: %v", p.conns)
	}
	if _, err := pb.NewMaintenanceClient(used.cc).Status(t.Context(), &pb.StatusRequest{}); err != nil {
		t.Errorf("closed under its user: %v", err)
	}
	p.release(used, true)
	if _, err := pb.NewMaintenanceClient(used.cc).Status(t.Context(), &pb.StatusRequest{}); err == nil {
		t.Error("the last user did not close it")
	}

	rotated := Target{Endpoints: []Endpoint{a}, TLSIdentity: "2"}
	ask(t, p, rotated, a)
	p.Keep("c", rotated)
	if p.Len() != 2 || p.conns[keyOf(rotated, a)] == nil || p.conns[keyOf(both, a)] != nil {
		t.Errorf("connections with the certificates of before are kept: %v", p.conns)
	}
	p.Keep("c")
	if p.Len() != 1 || p.conns[keyOf(old, others)] == nil {
		t.Errorf("after the cluster was deleted: %v", p.conns)
	}
}
