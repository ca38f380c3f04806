// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// voters are voters. Some of them do not complete a read.
type voters struct {
	*oneMember
	hung   []string
	commit error
	read   []string
}

func threeVoters(t *testing.T, hung ...string) (*run, *voters) {
	t.Helper()
	v := &voters{oneMember: stopped(), hung: hung}
	s := &seen{Observed: planner.Observed{Cluster: v.cluster}}
	for i, name := range []string{"c-a", "c-b", "c-goes", "c-ill"} {
		m := planner.Member{ID: uint64(i + 1), Name: name, Health: planner.Healthy}
		if name == "c-ill" {
			m.Health, m.Reason = planner.Unhealthy, planner.ReasonNoLeader
		}
		s.Etcd.Members = append(s.Etcd.Members, m)
		s.voters.Endpoints = append(s.voters.Endpoints, etcd.Endpoint{Name: name})
	}
	s.Etcd.Linearizable = true
	return &run{Reconciler: &Reconciler{Config: Config{Objects: v, Etcd: v}}, seen: s}, v
}

// ProveWrite implements Etcd.
func (v *voters) ProveWrite(context.Context, etcd.Target) error { return v.commit }

// FailedReads implements Etcd.
func (v *voters) FailedReads(_ context.Context, target etcd.Target) map[string]error {
	failed := map[string]error{}
	for _, e := range target.Endpoints {
		v.read = append(v.read, e.Name)
		if slices.Contains(v.hung, e.Name) {
			failed[e.Name] = &etcd.Error{Op: "linearizable read", Member: e.Name, Kind: etcd.ErrTimeout}
		}
	}
	return failed
}

// TestVoterThatOnlyResponds: a voter that responds from memory and completes no read is not
// healthy. What else is wrong with a member stays what it was.
func TestVoterThatOnlyResponds(t *testing.T) {
	t.Parallel()
	r, _ := threeVoters(t, "c-b", "c-ill")
	observeReads(t.Context(), r)
	for i, want := range []planner.Reason{"", planner.ReasonNotServing, "", planner.ReasonNoLeader} {
		if m := r.seen.Etcd.Members[i]; m.Reason != want || (m.Health == planner.Healthy) != (want == "") {
			t.Errorf("%s: health %v, reason %q", m.Name, m.Health, m.Reason)
		}
	}
	r, v := threeVoters(t, "c-a")
	r.seen.voters.Endpoints = r.seen.voters.Endpoints[:1]
	observeReads(t.Context(), r)
	if len(v.read) > 0 {
		t.Errorf("the only voter has listed the members through a quorum, and got another read")
	}
}

// TestOthersCommit: before a member goes that need not go, the others that count commit a
// write and apply it.
func TestOthersCommit(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	for name, test := range map[string]struct {
		hung   []string
		commit error
		want   error
	}{
		"all serve":                {},
		"the one that goes hangs":  {hung: []string{"c-goes"}},
		"one that is ill hangs":    {hung: []string{"c-ill"}},
		"another voter hangs":      {hung: []string{"c-b"}, want: reconcile.ErrStale},
		"no write is committed":    {commit: failed, want: failed},
		"the data is corrupt":      {commit: &etcd.Error{Op: "prove a write", Kind: etcd.ErrCorrupt}},
		"corrupt, and one hangs":   {commit: &etcd.Error{Op: "prove a write", Kind: etcd.ErrCorrupt}, hung: []string{"c-a"}, want: reconcile.ErrStale},
		"no quorum for the commit": {commit: &etcd.Error{Op: "prove a write", Kind: etcd.ErrNoQuorum}, want: etcd.ErrNoQuorum},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, v := threeVoters(t, test.hung...)
			v.commit = test.commit
			if err := requireOtherVotersCommit(t.Context(), r, "c-goes"); !errors.Is(err, test.want) {
				t.Errorf("the error is %v, want %v", err, test.want)
			}
			if slices.Contains(v.read, "c-goes") || slices.Contains(v.read, "c-ill") {
				t.Errorf("asked were %q", v.read)
			}
		})
	}
}

// TestEveryVoterGoesFromVotersThatCommit: also a voter that cannot come back is removed only if the others commit.
func TestEveryVoterGoesFromVotersThatCommit(t *testing.T) {
	t.Parallel()
	for _, reason := range []planner.RemoveReason{planner.RemoveLost, planner.RemovePeersDiffer, planner.RemoveStuck, planner.RemoveCrashLooping} {
		r, _ := threeVoters(t, "c-b")
		goes := planner.RemoveMember{Name: "c-goes", Reason: reason}
		for i := range r.seen.Etcd.Members {
			r.seen.Etcd.Members[i].ID = uint64(i + 1)
			if r.seen.Etcd.Members[i].Name == goes.Name {
				goes.ID = uint64(i + 1)
			}
		}
		if err := requireRemovable(t.Context(), r, goes); !errors.Is(err, reconcile.ErrStale) {
			t.Errorf("%s: the error is %v", reason, err)
		}
	}
}

// TestVoterThatServesGoesFromVotersThatStay: a voter may serve although its pod counts as lost. It is removed only if the pods
// of the others stay. One that does not serve may be what they wait for.
func TestVoterThatServesGoesFromVotersThatStay(t *testing.T) {
	t.Parallel()
	for health, rejected := range map[planner.Health]bool{planner.Healthy: true, planner.Unhealthy: false} {
		r, v := threeVoters(t)
		v.pod = nil // what the cache does not show yet: the pods of the others were deleted
		r.seen.Etcd.Members[2].Health = health
		err := requireRemovable(t.Context(), r, planner.RemoveMember{ID: 3, Name: "c-goes", Reason: planner.RemoveLost})
		if errors.Is(err, reconcile.ErrStale) != rejected {
			t.Errorf("%v: the error is %v", health, err)
		}
	}
}

// learning is a learner beside a voter. It applies what it reads, or not.
type learning struct {
	*oneMember
	applied []uint64
	commit  error
}

// ProveWrite implements Etcd.
func (l *learning) ProveWrite(context.Context, etcd.Target) error { return l.commit }

// Statuses implements Etcd. The last of the applied indexes stays.
func (l *learning) Statuses(_ context.Context, target etcd.Target) map[string]etcd.StatusResult {
	now := l.applied[0]
	l.applied = l.applied[min(1, len(l.applied)-1):]
	return map[string]etcd.StatusResult{target.Endpoints[0].Name: {Health: etcd.MemberHealth{RaftApplied: now, Learner: true}}}
}

// TestLearnerApplies: a learner whose vote is needed votes only if it applies what is committed
// after it was seen.
func TestLearnerApplies(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	for name, test := range map[string]struct {
		applied []uint64
		commit  error
		learner string
		want    error
	}{
		"it applies at once":      {applied: []uint64{8}, learner: "c-a"},
		"it applies a bit later":  {applied: []uint64{7, 7, 8}, learner: "c-a"},
		"its disk hangs":          {applied: []uint64{7}, learner: "c-a", want: errNotApplied},
		"no write is committed":   {applied: []uint64{8}, commit: failed, learner: "c-a", want: failed},
		"it does not run anymore": {applied: []uint64{8}, learner: "c-other", want: reconcile.ErrStale},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &learning{oneMember: stopped(), applied: test.applied, commit: test.commit}
			s := &seen{Observed: planner.Observed{Cluster: l.cluster}, target: etcd.Target{Endpoints: []etcd.Endpoint{{Name: "c-a"}}}}
			s.Etcd.Members = []planner.Member{{ID: 5, Name: test.learner, RaftApplied: 7, Learner: true}}
			r := &run{Reconciler: &Reconciler{Config: Config{Objects: l, Etcd: l}}, seen: s}
			if err := requireLearnerApplies(t.Context(), r, planner.PromoteMember{ID: 5, Name: test.learner}); !errors.Is(err, test.want) {
				t.Errorf("the error is %v, want %v", err, test.want)
			}
		})
	}
}
