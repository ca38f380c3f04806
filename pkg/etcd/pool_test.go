// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	testingclock "k8s.io/utils/clock/testing"
)

// fakeServer responds Status and nothing else, so that many of them are cheap.
type fakeServer struct {
	pb.UnimplementedMaintenanceServer
	pb.UnimplementedClusterServer
	pb.UnimplementedKVServer

	version string
	index   uint64
	members []*pb.Member
	// late is how long the status takes; hangs is true for a server that completes no read.
	late  time.Duration
	hangs bool
	// leaderless members know no leader. A learner does not vote.
	leaderless, learner bool
	// statuses counts the questions for the status, calls has the others.
	statuses atomic.Int64
	mu       sync.Mutex
	calls    []string
}

func (f *fakeServer) note(call string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
}

func (f *fakeServer) Status(ctx context.Context, _ *pb.StatusRequest) (*pb.StatusResponse, error) {
	f.statuses.Add(1)
	if f.late > 0 && !pause(ctx, f.late) {
		return nil, ctx.Err()
	}
	response := &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: 1}, Leader: 1, Version: f.version, RaftIndex: f.index, IsLearner: f.learner}
	if f.leaderless {
		response.Leader = 0
	}
	return response, nil
}

func (f *fakeServer) Alarm(_ context.Context, r *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	f.note(fmt.Sprint("alarm ", r.Action))
	return &pb.AlarmResponse{Alarms: []*pb.AlarmMember{{MemberID: 9, Alarm: pb.AlarmType_NOSPACE}}}, nil
}

func (f *fakeServer) MemberList(ctx context.Context, r *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	f.note(fmt.Sprintf("list linearizable=%v", r.Linearizable))
	if f.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &pb.MemberListResponse{Header: &pb.ResponseHeader{ClusterId: 7}, Members: f.members}, nil
}

func (f *fakeServer) Range(_ context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	f.note(fmt.Sprintf("range serializable=%v", r.Serializable))
	return &pb.RangeResponse{}, nil
}

// serve starts a server and returns its endpoint.
func (f *fakeServer) serve(t *testing.T, name string) Endpoint {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.serveOn(t, l)
	return Endpoint{Name: name, URL: "http://" + l.Addr().String()}
}

func (f *fakeServer) serveOn(t *testing.T, l net.Listener) {
	t.Helper()
	s := grpc.NewServer()
	pb.RegisterMaintenanceServer(s, f)
	pb.RegisterClusterServer(s, f)
	pb.RegisterKVServer(s, f)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		s.Stop()
		<-done
	})
}

func ask(t *testing.T, p *Pool, target Target, e Endpoint) {
	t.Helper()
	if _, err := p.Client(target).Status(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

func TestPoolReusesAConnection(t *testing.T) {
	t.Parallel()
	p := NewPool(PoolConfig{})
	defer p.Close()
	var s fakeServer
	e := s.serve(t, "a")
	ask(t, p, Target{}, e)
	before := p.conns[connKey{url: e.URL}].cc
	ask(t, p, Target{}, e)
	if after := p.conns[connKey{url: e.URL}].cc; before != after {
		t.Error("a second connection was made")
	}
	ask(t, p, Target{TLSIdentity: "other"}, e)
	if p.Len() != 2 {
		t.Error("targets with different certificates share a connection")
	}
}

func TestPoolClosesIdleConnections(t *testing.T) {
	t.Parallel()
	clock := testingclock.NewFakeClock(time.Unix(0, 0))
	p := NewPool(PoolConfig{IdleTimeout: time.Minute, Clock: clock})
	defer p.Close()
	var s fakeServer
	a, b := s.serve(t, "a"), s.serve(t, "b")
	ask(t, p, Target{}, a)
	clock.Step(40 * time.Second)
	ask(t, p, Target{}, b)
	clock.Step(19 * time.Second)
	if p.Len() != 2 {
		t.Errorf("after 59 s: %d connections", p.Len())
	}
	clock.Step(time.Second)
	eventually(t, "the first one ends", func() bool { return p.Len() == 1 && clock.HasWaiters() })
	if p.conns[connKey{url: b.URL}] == nil {
		t.Errorf("the wrong one was closed: %v", p.conns)
	}
	clock.Step(40 * time.Second)
	eventually(t, "the second one ends, and the timer with it", func() bool { return p.Len() == 0 && !clock.HasWaiters() })
	ask(t, p, Target{}, a)
	if p.Len() != 1 || !clock.HasWaiters() {
		t.Errorf("used again: %d connections, timer %v", p.Len(), clock.HasWaiters())
	}
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-deadline:
			t.Fatal(what)
		case <-tick.C:
		}
	}
}

func TestPoolKeepsNoConnectionThatFailed(t *testing.T) {
	t.Parallel()
	p := NewPool(PoolConfig{})
	defer p.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := Endpoint{Name: "a", URL: "http://" + l.Addr().String()}
	_ = l.Close()
	if _, err := p.Client(Target{}).Status(t.Context(), e); !errors.Is(err, ErrUnavailable) {
		t.Errorf("no program listens: %v", err)
	}
	if p.Len() != 0 {
		t.Error("the connection was kept")
	}
}

func TestPoolInUseIsNotClosed(t *testing.T) {
	t.Parallel()
	p := NewPool(PoolConfig{})
	defer p.Close()
	var s fakeServer
	a := s.serve(t, "a")
	ask(t, p, Target{}, a)
	used, err := p.acquire(Target{}, a)
	if err != nil {
		t.Fatal(err)
	}
	// One user's failure ends the connection for new users, not for the other ones.
	again, err := p.acquire(Target{}, a)
	if err != nil || again != used {
		t.Fatal("not shared")
	}
	p.release(again, false)
	if _, err := pb.NewMaintenanceClient(used.cc).Status(t.Context(), &pb.StatusRequest{}); err != nil {
		t.Errorf("closed under its user: %v", err)
	}
	fresh, err := p.acquire(Target{}, a)
	if err != nil || fresh == used {
		t.Error("a failed connection was given out")
	}
	p.release(fresh, true)
	p.release(used, true)
	if _, err := pb.NewMaintenanceClient(used.cc).Status(t.Context(), &pb.StatusRequest{}); err == nil {
		t.Error("the last user did not close it")
	}
}

func TestPoolConcurrently(t *testing.T) {
	t.Parallel()
	p := NewPool(PoolConfig{IdleTimeout: time.Millisecond})
	var s fakeServer
	var endpoints []Endpoint
	for i := range 5 {
		endpoints = append(endpoints, s.serve(t, fmt.Sprintf("m%d", i)))
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 20 {
				if i%4 == 0 {
					p.Client(Target{Endpoints: endpoints}).Statuses(context.Background())
					continue
				}
				_, err := p.Client(Target{}).Status(context.Background(), endpoints[(i+j)%len(endpoints)])
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	p.Close()
	if p.Len() != 0 {
		t.Errorf("%d connections after Close", p.Len())
	}
	if _, err := p.Client(Target{}).Status(context.Background(), endpoints[0]); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// A lost race for the response of a slower member must not cost its connection.
func TestCancelledCallKeepsItsConnection(t *testing.T) {
	t.Parallel()
	p := NewPool(PoolConfig{})
	defer p.Close()
	var s fakeServer
	e := s.serve(t, "a")
	ask(t, p, Target{}, e)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Client(Target{}).Status(ctx, e); !errors.Is(err, ErrTimeout) {
		t.Errorf("cancelled: %v", err)
	}
	if p.Len() != 1 {
		t.Error("the connection was dropped")
	}
}

// TestConnectionHasOneTransport: gRPC would connect again by itself, perhaps to another process, and the proof of
// the first process would count for it.
func TestConnectionHasOneTransport(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	l := &link{}
	dial := l.dialOnce(listener.Addr().String())
	if l.hasEnded(connectivity.Idle) {
		t.Error("a connection has ended before it was made")
	}
	first, err := dial(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if second, err := dial(t.Context(), ""); !errors.Is(err, errEnded) {
		t.Errorf("a second transport: %v, %v", second, err)
	}
	if !l.hasEnded(connectivity.Idle) || l.hasEnded(connectivity.Ready) || l.hasEnded(connectivity.Connecting) {
		t.Error("a connection has ended if its transport no longer exists")
	}
}

// TestCancelledCallOnAConnectingConnection: gRPC may call a connection ready after a response has
// arrived on it. A canceled call keeps it then, and does not keep one that never worked.
func TestCancelledCallOnAConnectingConnection(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	cc, err := dial(Target{}, Endpoint{Name: "a", URL: "http://" + listener.Addr().String()}, &link{})
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	cc.Connect()
	for state := cc.GetState(); state != connectivity.Connecting; state = cc.GetState() {
		if !cc.WaitForStateChange(t.Context(), state) {
			t.Fatalf("the connection is %s", state)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := &conn{cc: cc}
	for _, responded := range []bool{false, true} {
		c.responded.Store(responded)
		if good := c.isGood(ctx, ErrTimeout); good != responded {
			t.Errorf("a connection on which etcd has responded (%t) is good: %t", responded, good)
		}
	}
}

func TestOldServersAreMadeToListLinearizably(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"3.2.13": "[range serializable=false list linearizable=true]",
		"3.4.37": "[range serializable=false list linearizable=true]",
		"3.5.0":  "[list linearizable=true]",
		"3.6.16": "[list linearizable=true]",
		"4.0.0":  "[list linearizable=true]",
		"":       "[range serializable=false list linearizable=true]",
	} {
		p := NewPool(PoolConfig{})
		s := &fakeServer{version: version}
		target := Target{Endpoints: []Endpoint{s.serve(t, "a")}}
		m, err := p.Client(target).Members(t.Context())
		if got := fmt.Sprint(s.calls); err != nil || m.ClusterID != 7 || got != want {
			t.Errorf("%q: %s, %+v, %v", version, got, m, err)
		}
		p.Close()
	}
}

// TestRoundAsksEachMemberOnce: the statuses are enough to choose the member to ask for the
// list, and the list is still read through a quorum.
func TestRoundAsksEachMemberOnce(t *testing.T) {
	t.Parallel()
	p := NewPool(PoolConfig{})
	defer p.Close()
	s := &fakeServer{version: "3.6.16"}
	var target Target
	for _, name := range []string{"a", "b", "c"} {
		target.Endpoints = append(target.Endpoints, s.serve(t, name))
	}
	responses := p.Client(target).Statuses(t.Context())
	for i, e := range target.Endpoints {
		health := responses[e.Name].Health
		target.Endpoints[i].Status = &health
	}
	if _, err := p.Client(target).Members(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, lists := s.statuses.Load(), fmt.Sprint(s.calls); got != 3 || lists != "[list linearizable=true]" {
		t.Errorf("%d statuses of three members and %s", got, lists)
	}

	// A member that no longer exists by now is not the only one that may respond.
	away := Endpoint{Name: "away", URL: "http://" + freeAddress(t), Status: &MemberHealth{ID: 9, Leader: 9, Version: "3.6.16"}}
	if _, err := p.Client(Target{Endpoints: append([]Endpoint{away}, target.Endpoints...)}).Members(t.Context()); err != nil {
		t.Errorf("the leader of before no longer exists: %v", err)
	}
}

// freeAddress returns an address at which no program listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestAddressIsDialedInsteadOfTheURL(t *testing.T) {
	t.Parallel()
	p := NewPool(PoolConfig{})
	defer p.Close()
	var s fakeServer
	e := s.serve(t, "a")
	e.Address = e.URL[len("http://"):]
	e.URL = "http://m.c.ns.svc.invalid:2379"
	ask(t, p, Target{}, e)
	if err := p.WaitServing(t.Context(), Target{}, e); err != nil {
		t.Error(err)
	}
}

// An etcd before 3.4 tells no applied index: the committed index shows which member is behind.
func TestSnapshotSourcesOfOldServers(t *testing.T) {
	t.Parallel()
	p := NewPool(PoolConfig{})
	defer p.Close()
	var target Target
	for name, index := range map[string]uint64{"a": 10, "b": 5000, "c": 5001} {
		s := &fakeServer{version: "3.3.27", index: index}
		target.Endpoints = append(target.Endpoints, s.serve(t, name))
	}
	sources, err := p.Client(target).SnapshotSources(t.Context())
	if err != nil || len(sources) != 3 || sources[0].Name != "c" || sources[1].Name != "b" || sources[2].Name != "a" {
		t.Errorf("%+v, %v", sources, err)
	}
}

// TestSnapshotSourcesWithoutLeader: a quorum confirms only what a member that follows a leader has. Without a leader the
// member that has the most comes first, however little that is.
func TestSnapshotSourcesWithoutLeader(t *testing.T) {
	t.Parallel()
	p := NewPool(PoolConfig{})
	defer p.Close()
	for want, servers := range map[string]map[string]*fakeServer{
		"a c b": {"a": {index: 5000}, "b": {index: 5001, leaderless: true}, "c": {index: 5002, leaderless: true}},
		"c b a": {"a": {index: 5000, leaderless: true}, "b": {index: 5001, leaderless: true}, "c": {index: 5002, leaderless: true}},
	} {
		var target Target
		for name, s := range servers {
			target.Endpoints = append(target.Endpoints, s.serve(t, name))
		}
		sources, err := p.Client(target).SnapshotSources(t.Context())
		var names []string
		for _, s := range sources {
			names = append(names, s.Name)
		}
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("%s, want %s: %v", got, want, err)
		}
	}
}

// TestSnapshotOfALearner: a recovery may continue from a learner, which is then the only member that it names. Otherwise no
// snapshot is of a learner.
func TestSnapshotOfALearner(t *testing.T) {
	t.Parallel()
	p := NewPool(PoolConfig{})
	defer p.Close()
	learner, voter := (&fakeServer{learner: true, index: 9}).serve(t, "l"), (&fakeServer{index: 8}).serve(t, "v")
	for want, endpoints := range map[string][]Endpoint{"l": {learner}, "v": {learner, voter}} {
		sources, err := p.Client(Target{Endpoints: endpoints}).SnapshotSources(t.Context())
		if err != nil || len(sources) != 1 || sources[0].Name != want {
			t.Errorf("%+v, want %s: %v", sources, want, err)
		}
	}
}

// An etcd before 3.4 leaves the alarms out of its status. One request, which costs a
// proposal, reads them; members that report alarms get no such request.
func TestAlarmsOfOldServers(t *testing.T) {
	t.Parallel()
	for version, asked := range map[string]bool{"3.2.13": true, "3.3.27": true, "3.4.0": false, "3.6.16": false, "": false} {
		p := NewPool(PoolConfig{})
		s := &fakeServer{version: version}
		e := s.serve(t, "a")
		b := e
		b.Name = "b"
		results := p.Client(Target{Endpoints: []Endpoint{e, b}}).Statuses(t.Context())
		told := map[bool]string{true: "[alarm GET]", false: "[]"}[asked]
		for name, r := range results {
			if r.Err != nil || slices.Contains(r.Health.Alarms, Alarm{MemberID: 9, Type: AlarmNoSpace}) != asked {
				t.Errorf("%q: %s says %+v, %v", version, name, r.Health, r.Err)
			}
		}
		if got := fmt.Sprint(s.calls); got != told || len(results) != 2 {
			t.Errorf("%q: asked %s of %d members", version, got, len(results))
		}
		p.Close()
	}
}
