// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"time"

	"github.com/etcd-operator/etcd-operator/test/simulation/faults"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
	"github.com/etcd-operator/etcd-operator/test/simulation/timeline"
)

// Result is what a schedule came to.
type Result struct {
	Schedule  *schedules.Schedule
	Violation *timeline.Violation
	// Trace is what happened, if a trace was requested.
	Trace []string
}

// Run plays a schedule. The same schedule always gives the same result.
func Run(plan *schedules.Schedule, variant Variant, stats *timeline.Stats, tracing bool) Result {
	w := faults.New(plan, stats, tracing)
	w.Wrap, w.AdmitsAll = variant.wrap, variant.admitsAll
	stats.Schedules++
	for _, e := range plan.Events {
		w.After(e.At, func() { w.CarryOut(e) })
	}
	if variant.wrap == nil && !variant.admitsAll && variant.story == nil {
		w.AskForOperations()
		w.AskForReplacements()
	}
	w.StartManager(0)
	w.CreateCluster()
	if plan.Joins {
		w.After(time.Duration(plan.Seed%180)*time.Second, w.RemoveOldMembers)
	}
	w.After(0, w.Beat)
	w.After(0, w.Client)
	var end time.Duration
	for _, e := range plan.Events {
		end = max(end, e.At)
		if e.Kind == schedules.EventOldAPI {
			end = max(end, e.At+e.For)
		}
	}
	for w.Elapsed < end+time.Minute && w.Violation == nil {
		w.Advance(time.Second)
	}
	if w.Violation == nil {
		w.Settle()
	}
	stats.Steps += w.Steps
	return Result{Schedule: plan, Violation: w.Violation, Trace: w.Log}
}

// Shrink leaves out events as long as the same rule is broken.
func Shrink(plan *schedules.Schedule, variant Variant, rule string) *schedules.Schedule {
	const tries = 400
	left := tries
	breaks := func(candidate *schedules.Schedule) bool {
		left--
		v := Run(candidate, variant, timeline.NewStats(), false).Violation
		return v != nil && v.Rule == rule
	}
	for size := max(1, len(plan.Events)/2); size > 0 && left > 0; {
		shorter := false
		for from := 0; from < len(plan.Events) && left > 0; {
			candidate := plan.Without(from, min(from+size, len(plan.Events)))
			if breaks(candidate) {
				plan, shorter = candidate, true
			} else {
				from += size
			}
		}
		if !shorter || size > 1 {
			size = cmp.Or(size/2, 0)
		}
	}
	return plan
}
