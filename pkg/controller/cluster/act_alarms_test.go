// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"testing"

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
		etcd   alarmed
		events int
	}{
		"the alarm was raised":          {alarmed{raised: true}, 1},
		"a voter still reports it":      {alarmed{}, 0},
		"etcd does not respond in time": {alarmed{err: etcd.ErrTimeout}, 0},
	} {
		l := newDeletedCluster(t)
		r := &run{Reconciler: &Reconciler{Config: Config{Recorder: l, Etcd: test.etcd}}, seen: &seen{Observed: planner.Observed{Cluster: l.c}}}
		action := planner.DisarmNoSpace{ID: 7}
		if err := carryOut(t.Context(), r, action); !errors.Is(err, test.etcd.err) {
			t.Errorf("%s: %v, want %v", name, err, test.etcd.err)
		}
		if len(l.events) != test.events {
			t.Errorf("%s: events %q, want %d", name, l.events, test.events)
		}
		if !isUpkeep(action) {
			t.Errorf("%s: a failure stops the plan", name)
		}
	}
}
