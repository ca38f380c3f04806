// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"time"

	"github.com/etcd-operator/etcd-operator/test/simulation/faults"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
	"github.com/etcd-operator/etcd-operator/test/simulation/timeline"
)

// phase is something that is done to a cluster, step by step.
type phase struct {
	name string
	// plan is the cluster before; it has no events.
	plan schedules.Schedule
	// declares is true if the first step creates the cluster; otherwise the cluster runs
	// before the first step.
	declares bool
	steps    []step
}

// step is a change by a user or an event; done returns what is still missing, or "".
type step struct {
	do   func(*faults.World)
	done func(*faults.World) string
}

// site is one call of a controller to the API or to etcd.
type site struct {
	name  string
	write bool
}

// ending is what happens to a controller at a call.
type ending struct {
	name  string
	fault manager.CallFault
	// standby is true if another controller takes over at once; a new one is started
	// after a while otherwise.
	standby bool
	// pause is how long the process stands still. Another process takes over meanwhile, and
	// the first one continues for a moment before it ends.
	pause time.Duration
	// reads is true if the ending is tried at calls that only read, too. For most endings such
	// a cut leaves no trace, so it is not tried.
	reads bool
	// lost, if set, loses the record of the cluster right before the call, which then is
	// carried out.
	lost func(*faults.World)
	// rare is true if it is only tried when the sweep is thorough.
	rare bool
}

// afterPause is how long a process continues that has lost its lease during a pause.
const afterPause = 2 * time.Second

// endings are the ways in which every call is cut.
var endings = []ending{
	{name: "killed before it is sent", fault: manager.CrashBefore, reads: true},
	{name: "killed before it is sent, another takes over", fault: manager.CrashBefore, standby: true},
	{name: "killed after it was carried out, the reply is lost", fault: manager.CrashAfter},
	{name: "killed after it was carried out, another takes over", fault: manager.CrashAfter, standby: true},
	{name: "killed after the reply", fault: manager.CrashReply},
	{name: "killed after the reply, another takes over", fault: manager.CrashReply, standby: true},
	{name: "the connection is cut before it is sent", fault: manager.FailBefore},
	{name: "the connection is cut after it was carried out", fault: manager.LoseReply},
	{name: "the record was deleted before it", lost: func(w *faults.World) { w.LoseRecord(faults.DeleteRecord, 0) }, reads: true},
	{name: "the record was emptied before it", lost: func(w *faults.World) { w.LoseRecord(faults.EmptyRecord, 0) }},
	{name: "the record was replaced by an empty object before it", lost: func(w *faults.World) { w.LoseRecord(faults.ReplaceRecord, 0) }, rare: true},
	{name: "stopped for 15 s before it, another takes over", fault: manager.PauseBefore, pause: 15 * time.Second},
	{name: "stopped for 15 s after it, another takes over", fault: manager.PauseAfter, pause: 15 * time.Second, rare: true},
	{name: "stopped for 3 s before it, another takes over", fault: manager.PauseBefore, pause: 3 * time.Second, rare: true},
	{name: "killed while it is under way", fault: manager.CrashUnderway, rare: true},
	{name: "killed while it is under way, another takes over", fault: manager.CrashUnderway, standby: true, rare: true},
	{name: "it is carried out after the caller stopped waiting", fault: manager.Late, rare: true},
	{name: "a read is cut, another takes over", fault: manager.CrashBefore, standby: true, reads: true, rare: true},
	{name: "a read fails", fault: manager.FailBefore, reads: true, rare: true},
	{name: "stopped for 15 s at a read, another takes over", fault: manager.PauseBefore, pause: 15 * time.Second, reads: true, rare: true},
}

// cut is one call of a phase and what happens to the controller there.
type cut struct {
	at  int
	how *ending
}

// tour notes the calls of the controllers during a phase, and cuts one of them.
type tour struct {
	w        *faults.World
	underway bool
	sites    []site
	cut      *cut
}

// next notes a call and returns what goes wrong with it, or nil.
func (t *tour) next(c *manager.Manager, name string, write bool) *manager.Fault {
	if !t.underway {
		return nil
	}
	t.sites = append(t.sites, site{name, write})
	if t.cut == nil || t.cut.at != len(t.sites)-1 {
		return nil
	}
	how := t.cut.how
	if how.lost != nil {
		t.w.Disturb()
		how.lost(t.w)
		return nil
	}
	c.W.Standby = how.standby
	if how.pause > 0 {
		c.W.After(time.Millisecond, c.W.TakeOver)
		c.W.After(how.pause+afterPause, c.Crash)
	}
	return &manager.Fault{Fault: how.fault, Pause: how.pause}
}

// tourResult is the result of a phase that was played.
type tourResult struct {
	sites     []site
	violation *timeline.Violation
	trace     []string
	steps     int
}

// play plays a phase. At the end the cluster must be as declared, with all its data.
func (p *phase) play(at *cut, tracing bool) tourResult {
	plan := p.plan
	w := faults.New(&plan, timeline.NewStats(), tracing)
	tour := &tour{w: w, cut: at}
	w.OnCall, w.Checks.Rest = tour.next, sweepRest
	w.StartManager(0)
	w.After(0, w.Beat)
	w.After(0, w.Client)
	if !p.declares {
		w.CreateCluster()
		reach(w, w.Goal)
	}
	tour.underway = true
	for _, s := range p.steps {
		s.do(w)
		reach(w, func() string { return s.done(w) })
	}
	tour.underway = false
	if at != nil && at.how.pause > 0 && w.Violation == nil {
		w.Advance(at.how.pause + 2*afterPause) // it has ended by then
	}
	if w.Violation == nil {
		w.Settle()
	}
	if w.Violation == nil && w.Stats.Spec != 1 {
		w.Violated("L1", "the cluster ends otherwise than declared: %v", w.Stats)
	}
	return tourResult{sites: tour.sites, violation: w.Violation, trace: w.Log, steps: w.Steps}
}

const (
	// noticeTime is how long a step takes at least: what was done shows by then.
	noticeTime = 5 * time.Second
	reachEvery = 500 * time.Millisecond
	// sweepRest is how long a cluster is watched after a phase.
	sweepRest = 45 * time.Second
)

// reach lets time pass until nothing is missing.
func reach(w *faults.World, missing func() string) {
	deadline := w.Elapsed + faults.SettleTime
	w.Advance(noticeTime)
	for w.Violation == nil {
		wrong := missing()
		if wrong == "" {
			return
		}
		if w.Elapsed > deadline {
			w.Violated("L1", "not reached: %s", wrong)
		}
		w.Advance(reachEvery)
	}
}

// gone returns an object that still exists of a deleted cluster.
func gone(w *faults.World) string {
	for k := kubernetes.Kind(0); k < kubernetes.Kinds; k++ {
		for _, object := range w.Store.List(k) {
			return fmt.Sprintf("%s %s is left", kubernetes.KindNames[k], object.GetName())
		}
	}
	return ""
}
