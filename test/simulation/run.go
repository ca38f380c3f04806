// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"time"
)

// Result is what a schedule came to.
type Result struct {
	Schedule  *Schedule
	Violation *Violation
	// Trace is what happened, if it was asked for.
	Trace []string
}

// Run plays a schedule. The same schedule always gives the same result.
func Run(plan *Schedule, variant Variant, stats *Stats, tracing bool) Result {
	w := newWorld(plan, variant, stats, tracing)
	stats.Schedules++
	for _, e := range plan.Events {
		w.after(e.At, func() { w.happen(e) })
	}
	w.askForOperations()
	w.startManager(0)
	w.declare()
	w.after(0, w.beat)
	w.after(0, w.client)
	var end time.Duration
	for _, e := range plan.Events {
		end = max(end, e.At)
		if e.Kind == EventOldAPI {
			end = max(end, e.At+e.For)
		}
	}
	for w.now < end+time.Minute && w.checks.found == nil {
		w.advance(time.Second)
	}
	if w.checks.found == nil {
		w.settle()
	}
	stats.Steps += w.steps
	return Result{Schedule: plan, Violation: w.checks.found, Trace: w.log}
}

// Shrink leaves out events as long as the same rule is broken.
func Shrink(plan *Schedule, variant Variant, rule string) *Schedule {
	const tries = 400
	left := tries
	breaks := func(candidate *Schedule) bool {
		left--
		v := Run(candidate, variant, newStats(), false).Violation
		return v != nil && v.Rule == rule
	}
	for size := max(1, len(plan.Events)/2); size > 0 && left > 0; {
		shorter := false
		for from := 0; from < len(plan.Events) && left > 0; {
			candidate := plan.without(from, min(from+size, len(plan.Events)))
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
