// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// Endpoint returns where the member serves clients.
func (m *Member) Endpoint() etcd.Endpoint { return etcd.Endpoint{Name: m.Name, URL: m.ClientURL} }

// Database returns the path of the member's database, which can be opened while it is stopped.
func (m *Member) Database() string { return filepath.Join(m.config.Dir, "member", "snap", "db") }

// IsRunning is true between Start and Stop.
func (m *Member) IsRunning() bool {
	m.cluster.mu.Lock()
	defer m.cluster.mu.Unlock()
	return m.server != nil
}

// ID returns the ID that etcd gave the member; it must have been added.
func (m *Member) ID() uint64 {
	t := m.cluster.t
	t.Helper()
	m.cluster.mu.Lock()
	server := m.server
	m.cluster.mu.Unlock()
	if server != nil {
		return uint64(server.Server.MemberID())
	}
	list, err := m.cluster.Client().Members(context.Background())
	if err != nil {
		t.Fatalf("ID of %s: %v", m.Name, err)
	}
	for _, e := range list.Members {
		for _, u := range e.PeerURLs {
			if u == m.PeerURL {
				return e.ID
			}
		}
	}
	t.Fatalf("%s is not a member", m.Name)
	return 0
}

// Start starts the server and waits until it serves clients.
func (m *Member) Start() {
	m.cluster.t.Helper()
	m.StartOnly()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := m.cluster.pool.WaitServing(ctx, etcd.Target{}, m.Endpoint()); err != nil {
		m.cluster.t.Fatalf("%s does not serve: %v", m.Name, err)
	}
}

// StartOnly starts the server and waits for nothing: without a quorum a member does
// not serve clients.
func (m *Member) StartOnly() {
	t := m.cluster.t
	t.Helper()
	config := m.config
	server, err := embed.StartEtcd(&config)
	if err != nil {
		t.Fatalf("start %s: %v", m.Name, err)
	}
	m.cluster.mu.Lock()
	m.server = server
	m.cluster.mu.Unlock()
	t.Cleanup(m.Kill)
}

// Stop stops the server as a signal would: a leader hands over first. The data stays.
func (m *Member) Stop() {
	if server := m.take(); server != nil {
		server.Close()
	}
}

// Kill stops the server without a word to the others. The data stays.
func (m *Member) Kill() {
	if server := m.take(); server != nil {
		server.Server.HardStop()
		server.Close()
	}
}

func (m *Member) take() *embed.Etcd {
	m.cluster.mu.Lock()
	defer m.cluster.mu.Unlock()
	server := m.server
	m.server = nil
	return server
}

// Put writes keys through this member, so that there is something to catch up with.
func (m *Member) Put(n int) {
	t := m.cluster.t
	t.Helper()
	m.cluster.mu.Lock()
	server := m.server
	m.cluster.mu.Unlock()
	client := v3client.New(server.Server)
	defer client.Close()
	for i := range n {
		if _, err := client.Put(context.Background(), fmt.Sprintf("/key/%d", i), "value"); err != nil {
			t.Fatalf("put at %s: %v", m.Name, err)
		}
	}
}

// RaiseNoSpace raises the alarm of a full database.
func (m *Member) RaiseNoSpace() {
	m.cluster.t.Helper()
	m.Raise(m.ID(), pb.AlarmType_NOSPACE)
}

// Raise raises an alarm of the member with an ID, which the cluster need not have. Each member that runs says so afterwards:
// a follower applies it later than the leader, and its status is what it has applied.
func (m *Member) Raise(id uint64, alarm pb.AlarmType) {
	t := m.cluster.t
	t.Helper()
	m.cluster.mu.Lock()
	servers := []*embed.Etcd{m.server}
	for _, other := range m.cluster.members {
		if other != m && other.server != nil {
			servers = append(servers, other.server)
		}
	}
	m.cluster.mu.Unlock()
	req := &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: id, Alarm: alarm}
	for _, server := range servers {
		if _, err := server.Server.Alarm(context.Background(), req); err != nil {
			t.Fatalf("alarm at %s: %v", server.Config().Name, err)
		}
		req = &pb.AlarmRequest{Action: pb.AlarmRequest_GET, Alarm: alarm} // through the log, too
	}
}

func (m *Member) entry() string { return m.Name + "=" + m.PeerURL }

// BlackHole returns the URL of a listener that accepts connections and never says a
// word.
func BlackHole(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var accepted []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			accepted = append(accepted, conn)
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
		mu.Lock()
		defer mu.Unlock()
		for _, c := range accepted {
			_ = c.Close()
		}
	})
	return "http://" + l.Addr().String()
}

// Nowhere returns a URL at which no program listens.
func Nowhere(t testing.TB) string {
	t.Helper()
	return "http://" + freeAddress(t)
}

// Ports below the range from which the kernel takes the ports of outgoing
// connections: nothing takes one between here and the start of a server.
const (
	firstPort = 12000
	lastPort  = 32000
)

// given holds the ports that were handed out in this process.
var given sync.Map

// freeAddress returns a loopback address on which no program listens.
func freeAddress(t testing.TB) string {
	t.Helper()
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		address := fmt.Sprintf("127.0.0.1:%d", port)
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("there is no free port")
	return ""
}
