// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// leases is a live API with the last report of each node.
type leases struct {
	Objects
	reports map[string]string
}

func (l *leases) NodeReports(context.Context, []string) (map[string]string, error) {
	return maps.Clone(l.reports), nil
}

// TestReportsAreAwaitedAcrossReconciles: one reconcile has less time than a kubelet takes between two reports.
// So each call looks once, and reports count that came since the first call, and not long ago.
func TestReportsAreAwaitedAcrossReconciles(t *testing.T) {
	t.Parallel()
	type step struct {
		at   time.Duration
		a, b string
		want error
	}
	for name, steps := range map[string][]step{
		"both report": {
			{0, "1", "1", errAwaitingReports}, {5 * time.Second, "2", "1", errAwaitingReports}, {9 * time.Second, "2", "2", nil},
			{10 * time.Second, "2", "2", errAwaitingReports}, // the next step wants reports of its own
		},
		"one is cut off": {
			{0, "1", "1", errAwaitingReports}, {10 * time.Second, "2", "1", errAwaitingReports}, {15 * time.Second, "2", "1", errNodesUnresponsive},
			{time.Hour, "9", "1", errNodesUnresponsive},
			{time.Hour + time.Second, "9", "2", errAwaitingReports}, // the report of a may be old by now
			{time.Hour + 11*time.Second, "10", "3", nil},
		},
		"the steps are far apart": {{0, "1", "1", errAwaitingReports}, {time.Minute, "2", "2", errAwaitingReports}, {70 * time.Second, "3", "3", nil}},
		"the clock is set back": {
			{0, "1", "1", errAwaitingReports}, {-3 * time.Hour, "1", "1", errAwaitingReports}, {15*time.Second - 3*time.Hour, "2", "1", errNodesUnresponsive},
		},
		"no node has a Lease": {{0, "", "", nil}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock, api := clocktesting.NewFakePassiveClock(noon().Now()), &leases{}
			begun := clock.Now()
			r := &run{Reconciler: &Reconciler{Config: Config{Objects: api, Clock: clock}}, key: types.NamespacedName{Name: "c"}, seen: &seen{Observed: planner.Observed{Pods: []planner.Pod{
				{Name: "c-a", Node: "a", Owned: true}, {Name: "c-b", Node: "b", Owned: true},
			}}}}
			for _, s := range steps {
				clock.SetTime(begun.Add(s.at))
				api.reports = map[string]string{"a": s.a, "b": s.b}
				maps.DeleteFunc(api.reports, func(_, version string) bool { return version == "" })
				err := requireNodesReport(t.Context(), r)
				if !errors.Is(err, s.want) {
					t.Fatalf("after %v: error %v, want %v", s.at, err, s.want)
				}
				w := waitFor(err)
				if said := w != nil; said != errors.Is(s.want, errNodesUnresponsive) {
					t.Errorf("after %v the status says %+v", s.at, w)
				}
			}
		})
	}
	if !errors.Is(errAwaitingReports, reconcile.ErrStale) {
		t.Error("reports that may come any moment are worth a retry, and no message")
	}
}
