// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// alarmed is an etcd with an alarm.
type alarmed struct {
	Etcd
	raised bool
	err    error
}

// DisarmNoSpace implements Etcd.
func (a alarmed) DisarmNoSpace(context.Context, etcd.Target, uint64) (bool, error) {
	return a.raised, a.err
}

// TestDisarmedOnce: an event tells of each alarm that was disarmed, and of no other request. A failure does
// not keep the rest of the plan from being carried out.
func TestDisarmedOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		etcd          alarmed
		events, count int
	}{
		"the alarm was raised":          {alarmed{raised: true}, 1, 1},
		"a voter still reports it":      {alarmed{}, 0, 1},
		"etcd does not respond in time": {alarmed{err: etcd.ErrTimeout}, 0, 1},
		"etcd is not reached":           {alarmed{err: etcd.ErrUnavailable}, 0, 0},
		"etcd rejects the request":      {alarmed{err: etcd.ErrDenied}, 0, 0},
	} {
		l := newDeletedCluster(t)
		r := &run{Reconciler: &Reconciler{Config: Config{Recorder: l, Etcd: test.etcd, Clock: clocktesting.NewFakePassiveClock(time.Now())}}, seen: &seen{Observed: planner.Observed{Cluster: l.c}}}
		action := planner.DisarmNoSpace{ID: 7}
		if err := carryOut(t.Context(), r, action); !errors.Is(err, test.etcd.err) {
			t.Errorf("%s: %v, want %v", name, err, test.etcd.err)
		}
		if len(l.events) != test.events {
			t.Errorf("%s: events %q, want %d", name, l.events, test.events)
		}
		if made := r.disarms.of(r.key, r.Clock.Now())[7]; made.Count != test.count || made.Last.IsZero() {
			t.Errorf("%s: %+v, and %d attempts count", name, made, test.count)
		}
		if !isUpkeep(action) {
			t.Errorf("%s: a failure stops the plan", name)
		}
	}
}

// TestDisarmMemory: attempts count until the alarm has not been disarmed for long, or the cluster is deleted.
func TestDisarmMemory(t *testing.T) {
	t.Parallel()
	var d disarmMemory
	key, now := types.NamespacedName{Namespace: "n", Name: "c"}, time.Now()
	if got := d.of(key, now); len(got) != 0 {
		t.Errorf("before the first attempt: %v", got)
	}
	d.note(key, 7, now, true)
	d.note(key, 7, now, true)
	for _, test := range []struct {
		at   time.Time
		want int
	}{{now, 2}, {now.Add(planner.DisarmMemory - 1), 2}, {now.Add(planner.DisarmMemory), 0}, {now, 0}} {
		if got := d.of(key, test.at)[7].Count; got != test.want {
			t.Errorf("at %v: %d attempts, want %d", test.at, got, test.want)
		}
	}
	d.note(key, 7, now, true)
	if d.forget(key); len(d.of(key, now)) != 0 {
		t.Error("a deleted cluster is remembered")
	}
	d.note(key, 7, now, true)
	if got := d.of(key, now.Add(-time.Second)); len(got) != 0 {
		t.Errorf("after the clock was set back: %v", got)
	}
}
