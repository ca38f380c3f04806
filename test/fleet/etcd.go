// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Version is what all members run.
const Version = "3.6.16"

var errNoMember = errors.New("no such member was added")

// Etcd responds for the members of all clusters.
type Etcd struct {
	pb.UnimplementedClusterServer
	pb.UnimplementedMaintenanceServer
	pb.UnimplementedKVServer
	pb.UnimplementedLeaseServer

	// Dials, Statuses and Lists count connections and questions; Changes counts changes
	// of a membership.
	Dials, Statuses, Lists, Changes atomic.Int64

	mu       sync.Mutex
	clusters map[string]*lineage
	// running holds the members that respond, by their address.
	running map[string]*process
	holes   []*hole
	lastID  uint64
	servers sync.WaitGroup
	// shared is nil if each member has a listener of its own.
	shared *socket
}

// lineage is one cluster of etcd.
type lineage struct {
	id, index, leader uint64
	members           []*pb.Member
}

// process is a member that runs.
type process struct {
	cluster  *lineage
	id       uint64
	server   *grpc.Server
	listener net.Listener
}

// hole takes connections and never says anything.
type hole struct {
	listener net.Listener
	mu       sync.Mutex
	conns    []net.Conn
}

func (h *hole) run() {
	for {
		conn, err := h.listener.Accept()
		if err != nil {
			return
		}
		h.mu.Lock()
		h.conns = append(h.conns, conn)
		h.mu.Unlock()
	}
}

func (h *hole) close() {
	_ = h.listener.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, conn := range h.conns {
		_ = conn.Close()
	}
}

// NewEtcd returns an Etcd without clusters. Close it.
func NewEtcd() *Etcd {
	return &Etcd{clusters: map[string]*lineage{}, running: map[string]*process{}}
}

// ShareSocket lets all members that start from now on accept connections by one descriptor. No other
// process may listen at the port.
func (e *Etcd) ShareSocket(ctx context.Context) error {
	made, err := newSocket(ctx, strconv.Itoa(resources.ClientPort))
	if err != nil {
		return err
	}
	e.shared = made
	e.servers.Go(made.run)
	return nil
}

func (e *Etcd) listen(address string) (net.Listener, error) {
	if e.shared != nil {
		return e.shared.listen(address)
	}
	return net.Listen("tcp", address)
}

// Start starts a member of a cluster at an address. initial is the value of
// --initial-cluster; alone makes it begin a cluster.
func (e *Etcd) Start(cluster, name, address, initial string, alone bool) error {
	listener, err := e.listen(address)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p, err := e.join(cluster, name, address, initial, alone)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	p.listener = &counted{listener, &e.Dials}
	// The buffers of thousands of connections are this process's own.
	p.server = grpc.NewServer(grpc.ReadBufferSize(0), grpc.WriteBufferSize(4<<10))
	pb.RegisterClusterServer(p.server, e)
	pb.RegisterMaintenanceServer(p.server, e)
	pb.RegisterKVServer(p.server, e)
	pb.RegisterLeaseServer(p.server, e)
	e.running[address] = p
	e.servers.Go(func() { _ = p.server.Serve(p.listener) })
	return nil
}

// join makes the member known. The caller holds the lock.
func (e *Etcd) join(cluster, name, address, initial string, alone bool) (*process, error) {
	c := e.clusters[cluster]
	if c == nil && alone {
		e.lastID += 2
		c = &lineage{id: e.lastID - 1, index: 10, leader: e.lastID}
		_, url, _ := strings.Cut(initial, "=")
		c.members = []*pb.Member{{ID: e.lastID, Name: name, PeerURLs: []string{url}}}
		e.clusters[cluster] = c
		return &process{cluster: c, id: e.lastID}, nil
	}
	if c != nil {
		for _, m := range c.members {
			if strings.Contains(m.PeerURLs[0], "//"+name+".") {
				m.Name, m.ClientURLs = name, []string{"http://" + address}
				return &process{cluster: c, id: m.ID}, nil
			}
		}
	}
	return nil, fmt.Errorf("member %s of %s: %w", name, cluster, errNoMember)
}

// Stop ends the member at an address, if there is one. Another member leads in its place.
func (e *Etcd) Stop(address string) {
	e.mu.Lock()
	p := e.running[address]
	delete(e.running, address)
	if p != nil {
		e.elect(p.cluster)
	}
	e.mu.Unlock()
	if p != nil {
		p.server.Stop()
	}
}

// elect keeps the leader if it runs. The caller holds the lock.
func (e *Etcd) elect(c *lineage) {
	var voters, up int
	var candidate uint64
	for _, m := range c.members {
		if m.IsLearner {
			continue
		}
		voters++
		for _, p := range e.running {
			if p.cluster == c && p.id == m.ID {
				up++
				if candidate == 0 || c.leader == m.ID {
					candidate = m.ID
				}
			}
		}
	}
	if c.leader = candidate; 2*up <= voters {
		c.leader = 0
	}
}

// Silence makes a member respond no more: it takes connections and says nothing.
func (e *Etcd) Silence(address string) error {
	e.Stop(address)
	listener, err := e.listen(address)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	made := &hole{listener: listener}
	e.holes = append(e.holes, made)
	e.servers.Go(made.run)
	return nil
}

// Size returns how many members a cluster has, and how many of them vote.
func (e *Etcd) Size(cluster string) (members, voters int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.clusters[cluster]; c != nil {
		for _, m := range c.members {
			if members++; !m.IsLearner {
				voters++
			}
		}
	}
	return members, voters
}

// Close ends all members.
func (e *Etcd) Close() {
	e.mu.Lock()
	running, holes := e.running, e.holes
	e.running, e.holes = map[string]*process{}, nil
	e.mu.Unlock()
	for _, p := range running {
		p.server.Stop()
	}
	for _, h := range holes {
		h.close()
	}
	if e.shared != nil {
		_ = e.shared.listener.Close()
	}
	e.servers.Wait()
}

// counted counts the connections that it accepts.
type counted struct {
	net.Listener
	n *atomic.Int64
}

func (c *counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.n.Add(1)
	}
	return conn, err
}
