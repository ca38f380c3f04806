// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"google.golang.org/grpc"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// Timers of the servers: fast, and slow enough for a busy machine.
const (
	heartbeat = 25 * time.Millisecond
	election  = 500 * time.Millisecond
	// patience bounds everything that a test waits for here.
	patience = 60 * time.Second
)

// Cluster is a cluster of etcd servers in this process.
type Cluster struct {
	t    testing.TB
	pool *etcd.Pool

	mu      sync.Mutex
	members map[string]*Member
}

// Member is one server. It keeps its name, URLs and data when it is stopped.
type Member struct {
	Name      string
	ClientURL string
	PeerURL   string

	cluster *Cluster
	config  embed.Config
	server  *embed.Etcd
}

// New starts a cluster of one voter, called m0, and waits until it serves.
func New(t testing.TB) *Cluster {
	t.Helper()
	return newCluster(t, func(*Member) {})
}

// NewEverywhere is New with a voter that listens for clients as those in pods do, on
// 0.0.0.0.
func NewEverywhere(t testing.TB) *Cluster {
	t.Helper()
	return newCluster(t, func(m *Member) {
		m.config.ListenClientUrls = []url.URL{mustURL(t, "http://0.0.0.0:"+m.config.ListenClientUrls[0].Port())}
	})
}

// NewWithoutStorageVersion is New with a voter that names no storage version while it sends a
// snapshot, as a member does whose storage had none a moment before.
func NewWithoutStorageVersion(t testing.TB) *Cluster {
	t.Helper()
	return newCluster(t, func(m *Member) {
		m.config.GRPCAdditionalServerOptions = []grpc.ServerOption{grpc.ChainStreamInterceptor(
			func(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
				return handle(server, versionless{stream})
			})}
	})
}

// versionless is a stream of snapshots that name no storage version.
type versionless struct{ grpc.ServerStream }

// SendMsg implements grpc.ServerStream.
func (s versionless) SendMsg(message any) error {
	if snapshot, ok := message.(*pb.SnapshotResponse); ok {
		snapshot.Version = ""
	}
	return s.ServerStream.SendMsg(message)
}

func newCluster(t testing.TB, change func(*Member)) *Cluster {
	t.Helper()
	// A member that runs responds, however slow the machine is; one that does not is rejected.
	pool := etcd.NewPool(etcd.PoolConfig{StatusTimeout: patience})
	t.Cleanup(pool.Close)
	c := &Cluster{t: t, pool: pool, members: map[string]*Member{}}
	m := c.newMember("m0")
	change(m)
	m.config.ClusterState = embed.ClusterStateFlagNew
	m.config.InitialCluster = m.entry()
	m.Start()
	return c
}

// NewVoters starts a cluster of n voters, m0 to m<n-1>.
func NewVoters(t testing.TB, n int) *Cluster {
	t.Helper()
	c := New(t)
	for i := 1; i < n; i++ {
		c.Promote(c.Learner(fmt.Sprintf("m%d", i)))
	}
	return c
}

// Learner adds a member as a learner and starts it.
func (c *Cluster) Learner(name string) *Member {
	c.t.Helper()
	m := c.Added(name)
	m.Start()
	return m
}

// Added adds a member as a learner and does not start it.
func (c *Cluster) Added(name string) *Member {
	c.t.Helper()
	m := c.newMember(name)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := c.Client().AddLearner(ctx, m.PeerURL); err != nil {
		c.t.Fatalf("add %s: %v", name, err)
	}
	// A member that starts takes the list of the member that responds first, and ends if
	// that list does not contain it yet. Kubernetes starts it again; this test does not.
	Eventually(c.t, "all know "+name, func() error { return c.allKnow(m.PeerURL) })
	m.config.ClusterState = embed.ClusterStateFlagExisting
	m.config.InitialCluster = c.initialCluster()
	return m
}

func (c *Cluster) allKnow(peerURL string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		if m.server != nil && !slices.ContainsFunc(m.server.Server.Cluster().Members(), func(known *membership.Member) bool {
			return slices.Contains(known.PeerURLs, peerURL)
		}) {
			return fmt.Errorf("%s has not heard of %s", m.Name, peerURL)
		}
	}
	return nil
}

// Promote makes a learner a voter as soon as etcd allows it, and returns when it has
// applied that itself: the leader has a moment before.
func (c *Cluster) Promote(m *Member) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	id := m.ID()
	Eventually(c.t, "promote "+m.Name, func() error { return c.Client().Promote(ctx, id) })
	Eventually(c.t, m.Name+" votes", func() error {
		s := c.Client().Statuses(ctx)[m.Name]
		if s.Err == nil && s.Health.Learner {
			return errors.New("it does not know yet")
		}
		return s.Err
	})
}

// Member returns the member with this name, running or not.
func (c *Cluster) Member(name string) *Member {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members[name]
	if m == nil {
		c.t.Fatalf("there is no member %s", name)
	}
	return m
}

// Leader waits until the running members agree on a leader and returns it.
func (c *Cluster) Leader() *Member {
	c.t.Helper()
	var leader *Member
	Eventually(c.t, "a leader", func() error {
		var id uint64
		for name, s := range c.Client().Statuses(context.Background()) {
			m := c.Member(name)
			if !m.IsRunning() {
				continue
			}
			if s.Err != nil {
				return s.Err
			}
			if s.Health.Leader == 0 || (id != 0 && id != s.Health.Leader) {
				return errors.New("the members see different leaders")
			}
			id = s.Health.Leader
			if s.Health.ID == id {
				leader = m
			}
		}
		if leader == nil || leader.ID() != id {
			return errors.New("the leader does not run")
		}
		return nil
	})
	return leader
}

// Target returns how to reach all members, running or not, in the order of their
// names.
func (c *Cluster) Target() etcd.Target {
	c.mu.Lock()
	defer c.mu.Unlock()
	var t etcd.Target
	for _, name := range slices.Sorted(maps.Keys(c.members)) {
		t.Endpoints = append(t.Endpoints, c.members[name].Endpoint())
	}
	return t
}

// Client returns a client for all members.
func (c *Cluster) Client() *etcd.Client { return c.pool.Client(c.Target()) }

// ClientOf returns a client for one member.
func (c *Cluster) ClientOf(m *Member) *etcd.Client {
	return c.pool.Client(etcd.Target{Endpoints: []etcd.Endpoint{m.Endpoint()}})
}

// Remove takes a member out of etcd and out of the target. It is killed first: a
// server that is requested its status in the moment in which it learns of its
// removal panics, which would end the test.
func (c *Cluster) Remove(m *Member) {
	c.t.Helper()
	id := m.ID()
	m.Kill()
	c.mu.Lock()
	delete(c.members, m.Name)
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.Client().Remove(ctx, id); err != nil {
		c.t.Fatalf("remove %s: %v", m.Name, err)
	}
}

// newMember reserves ports and a directory.
func (c *Cluster) newMember(name string) *Member {
	c.t.Helper()
	m := &Member{Name: name, ClientURL: "http://" + freeAddress(c.t), PeerURL: "http://" + freeAddress(c.t), cluster: c}
	config := embed.NewConfig()
	config.Name = name
	config.Dir = c.t.TempDir()
	config.ListenClientUrls = []url.URL{mustURL(c.t, m.ClientURL)}
	config.AdvertiseClientUrls = config.ListenClientUrls
	config.ListenPeerUrls = []url.URL{mustURL(c.t, m.PeerURL)}
	config.AdvertisePeerUrls = config.ListenPeerUrls
	config.TickMs = uint(heartbeat.Milliseconds())
	config.ElectionMs = uint(election.Milliseconds())
	config.StrictReconfigCheck = false
	config.UnsafeNoFsync = true
	config.LogLevel = "panic"
	config.LogOutputs = []string{"/dev/null"}
	m.config = *config
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members[name] = m
	return m
}

func (c *Cluster) initialCluster() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var entries []string
	for _, m := range c.members {
		entries = append(entries, m.entry())
	}
	slices.Sort(entries)
	return strings.Join(entries, ",")
}

func mustURL(t testing.TB, s string) url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return *u
}

// Eventually repeats f until it succeeds; the test fails if that takes too long. It
// waits for the responses of real servers, which is why it has to try.
func Eventually(t testing.TB, what string, f func() error) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("%s: %v", what, err)
		case <-tick.C:
		}
	}
}
