// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
)

// limit is far more than anything here takes on a busy machine.
const limit = 30 * time.Second

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func names(m etcd.Membership) []string {
	var out []string
	for _, member := range m.Members {
		name := member.Name
		if member.Learner {
			name += " (learner)"
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func TestMembershipLife(t *testing.T) {
	t.Parallel()
	ctx := within(t, limit)
	c := etcdtest.New(t)
	seed := c.Member("m0")
	seed.Put(50)

	first, err := c.Client().Members(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(first); !slices.Equal(got, []string{"m0"}) || first.ClusterID == 0 || first.From != seed.ID() {
		t.Fatalf("one member: %+v", first)
	}

	learner := c.Learner("m1")
	second, err := c.Client().Members(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(second); !slices.Equal(got, []string{"m0", "m1 (learner)"}) || second.ClusterID != first.ClusterID {
		t.Errorf("with a learner: %+v", second)
	}
	h, err := c.Client().Status(ctx, learner.Endpoint())
	if err != nil || !h.Learner || h.ID != learner.ID() || h.ClusterID != first.ClusterID {
		t.Errorf("the learner's status: %+v, %v", h, err)
	}

	if _, err := c.Client().AddLearner(ctx, learner.PeerURL); !errors.Is(err, etcd.ErrMemberExists) || !etcd.IsRejected(err) {
		t.Errorf("the same peer URL again: %v", err)
	}
	if _, err := c.Client().AddLearner(ctx, etcdtest.Nowhere(t)); !errors.Is(err, etcd.ErrTooManyLearners) || !etcd.IsRejected(err) {
		t.Errorf("a second learner: %v", err)
	}
	c.Promote(learner)
	if err := c.Client().Promote(ctx, learner.ID()); !errors.Is(err, etcd.ErrNotLearner) {
		t.Errorf("a second promotion: %v", err)
	}
	if err := c.Client().Promote(ctx, 42); !errors.Is(err, etcd.ErrMemberNotFound) {
		t.Errorf("the promotion of no member: %v", err)
	}
	h, err = c.Client().Status(ctx, learner.Endpoint())
	if err != nil || h.Learner || h.Leader != seed.ID() || h.Version == "" || h.DBSize == 0 || h.DBSizeInUse == 0 || h.Quota == 0 ||
		h.RaftTerm == 0 || h.RaftIndex == 0 || h.RaftApplied == 0 || len(h.Errors) != 0 || len(h.Alarms) != 0 {
		t.Errorf("the voter's status: %+v, %v", h, err)
	}

	// Only the bootstrap member gets requests from here on: see Cluster.Remove.
	id := learner.ID()
	if err := c.ClientOf(seed).Remove(ctx, id); err != nil {
		t.Fatal(err)
	}
	if err := c.ClientOf(seed).Remove(ctx, id); !errors.Is(err, etcd.ErrMemberNotFound) || !etcd.IsRejected(err) {
		t.Errorf("a second removal: %v", err)
	}
	last, err := c.ClientOf(seed).Members(ctx)
	if got := names(last); err != nil || !slices.Equal(got, []string{"m0"}) {
		t.Errorf("after the removal: %v, %v", got, err)
	}
}

func TestAddVoter(t *testing.T) {
	t.Parallel()
	ctx := within(t, limit)
	c := etcdtest.NewVoters(t, 2)
	url := etcdtest.Nowhere(t)
	added, err := c.Client().AddVoter(ctx, url)
	if err != nil || added.ID == 0 || added.Learner || added.Name != "" || !slices.Equal(added.PeerURLs, []string{url}) {
		t.Fatalf("added %+v, %v", added, err)
	}
	list, err := c.Client().Members(ctx)
	if err != nil || len(list.Members) != 3 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestLearnerThatNeverStartedIsNotReady(t *testing.T) {
	t.Parallel()
	ctx := within(t, limit)
	c := etcdtest.New(t)
	c.Member("m0").Put(50)
	id := c.Added("m1").ID()
	if err := c.Client().Promote(ctx, id); !errors.Is(err, etcd.ErrLearnerNotReady) || !etcd.IsRejected(err) {
		t.Errorf("promoted: %v", err)
	}
}

// Learners reject to list members; the call must not fail for that while a voter is
// there, and must say so while none is.
func TestMembersAsksVoters(t *testing.T) {
	t.Parallel()
	c := etcdtest.New(t)
	learner := c.Learner("m1")
	for range 5 {
		if _, err := c.Client().Members(within(t, limit)); err != nil {
			t.Fatal(err)
		}
	}
	alone := c.ClientOf(learner)
	if _, err := alone.Members(within(t, 300*time.Millisecond)); !errors.Is(err, etcd.ErrUnavailable) || etcd.IsRejected(err) {
		t.Errorf("a learner alone: %v", err)
	}
	if err := alone.Promote(within(t, limit), learner.ID()); !errors.Is(err, etcd.ErrUnavailable) {
		t.Errorf("a change through a learner alone: %v", err)
	}
}

func TestLostQuorumIsSaidInTime(t *testing.T) {
	t.Parallel()
	c := etcdtest.NewVoters(t, 3)
	leader := c.Leader()
	var left *etcdtest.Member
	for _, name := range []string{"m0", "m1", "m2"} {
		if m := c.Member(name); m != leader && left == nil {
			left = m
		} else {
			m.Kill()
		}
	}
	// It returns when its context ends. On a slow machine the survivor has not said yet by
	// then that it is there.
	etcdtest.Eventually(t, "a lost quorum", func() error {
		_, err := c.Client().Members(within(t, time.Second))
		if errors.Is(err, etcd.ErrNoQuorum) {
			return nil
		}
		return fmt.Errorf("the list without a quorum: %w", err)
	})
	// Once the survivor has noticed, it still responds for itself, and changes are
	// not even sent.
	etcdtest.Eventually(t, "no leader", func() error {
		s := c.Client().Statuses(context.Background())[left.Name]
		if s.Err == nil && s.Health.Leader != 0 {
			return errors.New("it still follows a leader")
		}
		return s.Err
	})
	s := c.Client().Statuses(context.Background())[left.Name]
	if s.Err != nil || len(s.Health.Errors) == 0 || len(s.Health.Alarms) != 0 {
		t.Errorf("the survivor's status: %+v", s)
	}
	if err := c.Client().Remove(within(t, limit), 1); !errors.Is(err, etcd.ErrNoQuorum) || etcd.IsRejected(err) {
		t.Errorf("a change without a quorum: %v", err)
	}
	own, err := c.Client().OwnMembers(within(t, limit), left.Endpoint())
	if err != nil || len(own.Members) != 3 || own.From != left.ID() {
		t.Errorf("the survivor's own list: %+v, %v", own, err)
	}

	left.Kill()
	if _, err := c.Client().Members(within(t, 300*time.Millisecond)); !errors.Is(err, etcd.ErrUnavailable) {
		t.Errorf("no member runs: %v", err)
	}
	if err := c.Client().Remove(within(t, limit), 1); !errors.Is(err, etcd.ErrUnavailable) {
		t.Errorf("a change without members: %v", err)
	}
}

func TestMembersWaitsForAnElection(t *testing.T) {
	t.Parallel()
	c := etcdtest.NewVoters(t, 3)
	c.Leader().Kill()
	if _, err := c.Client().Members(within(t, limit)); err != nil {
		t.Error(err)
	}
}

func TestMembersIsFreshAfterARestart(t *testing.T) {
	t.Parallel()
	ctx := within(t, limit)
	c := etcdtest.NewVoters(t, 3)
	behind := c.Member("m1")
	behind.Stop()
	gone := c.Member("m2")
	id := gone.ID()
	// Two voters are left that can agree on the removal: m0 and the one removed.
	if err := c.ClientOf(c.Member("m0")).Remove(ctx, id); err != nil {
		t.Fatal(err)
	}
	gone.Kill()
	// The member that missed the removal must not respond from its old list.
	behind.Start()
	list, err := c.ClientOf(behind).Members(ctx)
	if err != nil || slices.ContainsFunc(list.Members, func(m etcd.Member) bool { return m.ID == id }) {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestBlackHoleDelaysNoOtherMember(t *testing.T) {
	t.Parallel()
	c := etcdtest.NewVoters(t, 2)
	// Asked one after the other, the holes would use up all the time before m0 gets its request.
	const own, holes = 2 * time.Second, 20
	target := etcd.Target{}
	for i := range holes {
		target.Endpoints = append(target.Endpoints, etcd.Endpoint{Name: fmt.Sprintf("hole%d", i), URL: etcdtest.BlackHole(t)})
	}
	target.Endpoints = append(target.Endpoints, c.Target().Endpoints...)
	pool := etcd.NewPool(etcd.PoolConfig{StatusTimeout: own})
	defer pool.Close()
	client := pool.Client(target)
	etcdtest.Eventually(t, "members that respond in time", func() error {
		responses := client.Statuses(within(t, own*(holes-1)))
		if len(responses) != holes+2 {
			t.Errorf("%+v", responses)
		}
		for i := range holes {
			// gRPC may notice the deadline while it closes the connection, and say that.
			if err := responses[fmt.Sprintf("hole%d", i)].Err; !errors.Is(err, etcd.ErrTimeout) && !errors.Is(err, etcd.ErrUnavailable) {
				t.Errorf("a black hole: %v", err)
			}
		}
		return errors.Join(responses["m0"].Err, responses["m1"].Err)
	})
	if _, err := client.Members(within(t, limit)); err != nil {
		t.Error(err)
	}
}

func TestStatusesNameUnresponsiveMembers(t *testing.T) {
	t.Parallel()
	c := etcdtest.NewVoters(t, 3)
	down := c.Member("m1")
	if down == c.Leader() {
		down = c.Member("m2")
	}
	down.Stop()
	for name, s := range c.Client().Statuses(context.Background()) {
		if (s.Err != nil) != (name == down.Name) {
			t.Errorf("%s: %+v", name, s)
		}
	}
	// The same client sees it at once when it is back: nothing waits for a back-off.
	down.Start()
	if s := c.Client().Statuses(context.Background())[down.Name]; s.Err != nil {
		t.Errorf("back: %v", s.Err)
	}
}

func TestMoveLeader(t *testing.T) {
	t.Parallel()
	ctx := within(t, limit)
	c := etcdtest.NewVoters(t, 3)
	from := c.Leader()
	var to *etcdtest.Member
	for _, name := range []string{"m0", "m1", "m2"} {
		if m := c.Member(name); m != from {
			to = m
		}
	}
	if err := c.Client().MoveLeader(ctx, to.ID()); err != nil {
		t.Fatal(err)
	}
	if got := c.Leader(); got != to {
		t.Errorf("%s leads, want %s", got.Name, to.Name)
	}
	if err := c.Client().MoveLeader(ctx, to.ID()); err != nil {
		t.Errorf("to the one that leads: %v", err)
	}
	if err := c.Client().MoveLeader(ctx, 42); !errors.Is(err, etcd.ErrBadTransferee) {
		t.Errorf("to no member: %v", err)
	}
	if err := c.ClientOf(from).MoveLeader(ctx, from.ID()); !errors.Is(err, etcd.ErrNotLeader) || !etcd.IsRejected(err) {
		t.Errorf("at a follower: %v", err)
	}
}

func TestAlarms(t *testing.T) {
	t.Parallel()
	ctx := within(t, limit)
	c := etcdtest.New(t)
	m := c.Member("m0")
	if alarms, err := c.Client().Alarms(ctx); err != nil || len(alarms) != 0 {
		t.Errorf("at first: %v, %v", alarms, err)
	}
	m.RaiseNoSpace()
	want := etcd.Alarm{MemberID: m.ID(), Type: etcd.AlarmNoSpace}
	if alarms, err := c.Client().Alarms(ctx); err != nil || !slices.Equal(alarms, []etcd.Alarm{want}) {
		t.Errorf("asked for: %v, %v", alarms, err)
	}
	h, err := c.Client().Status(ctx, m.Endpoint())
	if err != nil || !slices.Equal(h.Alarms, []etcd.Alarm{want}) || len(h.Errors) != 0 {
		t.Errorf("in the status: %+v, %v", h, err)
	}
	// The list is still readable: that is how the space is freed.
	if _, err := c.Client().Members(ctx); err != nil {
		t.Error(err)
	}
	for _, raised := range []bool{true, false} { // the second time there is nothing to disarm
		if disarmed, err := c.Client().Disarm(ctx, want); err != nil || disarmed != raised {
			t.Errorf("disarmed %t, %v; want %t", disarmed, err, raised)
		}
	}
	if alarms, err := c.Client().Alarms(ctx); err != nil || len(alarms) != 0 {
		t.Errorf("at last: %v, %v", alarms, err)
	}
}

func TestWaitServing(t *testing.T) {
	t.Parallel()
	c := etcdtest.NewVoters(t, 2)
	pool := etcd.NewPool(etcd.PoolConfig{})
	defer pool.Close()
	m := c.Member("m1")
	m.Stop()

	if err := pool.WaitServing(within(t, 200*time.Millisecond), etcd.Target{}, m.Endpoint()); !errors.Is(err, etcd.ErrUnavailable) {
		t.Errorf("a member that is down: %v", err)
	}
	hole := etcd.Endpoint{Name: "hole", URL: etcdtest.BlackHole(t)}
	if err := pool.WaitServing(within(t, 200*time.Millisecond), etcd.Target{}, hole); !errors.Is(err, etcd.ErrTimeout) {
		t.Errorf("a black hole: %v", err)
	}

	served := make(chan error, 1)
	ctx := within(t, limit)
	go func() { served <- pool.WaitServing(ctx, etcd.Target{}, m.Endpoint()) }()
	select {
	case err := <-served:
		t.Fatalf("served too early: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	m.StartOnly()
	if err := <-served; err != nil {
		t.Errorf("after the start: %v", err)
	}
}

func TestWaitEnd(t *testing.T) {
	t.Parallel()
	c := etcdtest.NewVoters(t, 3)
	pool := etcd.NewPool(etcd.PoolConfig{})
	t.Cleanup(pool.Close)
	m := c.Member("m1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := pool.WaitEnd(ctx, etcd.Target{}, m.Endpoint()); !errors.Is(err, context.Canceled) {
		t.Errorf("of a member that serves, canceled: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- pool.WaitEnd(within(t, time.Minute), etcd.Target{}, m.Endpoint()) }()
	m.Stop()
	if err := <-ended; err != nil {
		t.Errorf("of a member that has stopped: %v", err)
	}
}

func TestBadEndpoint(t *testing.T) {
	t.Parallel()
	pool := etcd.NewPool(etcd.PoolConfig{})
	defer pool.Close()
	for _, url := range []string{"", "127.0.0.1:2379", "http://127.0.0.1", "ftp://127.0.0.1:2379", "http://%zz:2379"} {
		e := etcd.Endpoint{Name: "bad", URL: url}
		if _, err := pool.Client(etcd.Target{}).Status(within(t, limit), e); !errors.Is(err, etcd.ErrOther) {
			t.Errorf("%q: %v", url, err)
		}
	}
	if _, err := pool.Client(etcd.Target{}).Members(within(t, 100*time.Millisecond)); !errors.Is(err, etcd.ErrUnavailable) {
		t.Errorf("no endpoint: %v", err)
	}
}
