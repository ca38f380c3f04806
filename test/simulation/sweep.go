// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"time"
)

// phase is something that is done to a cluster, step by step.
type phase struct {
	name string
	// plan is the cluster before; it has no events.
	plan Schedule
	// unborn is true if the first step declares the cluster; it runs as declared
	// otherwise.
	unborn bool
	steps  []step
}

// step is something that somebody does, or that happens; done returns what is still
// missing, or "".
type step struct {
	do   func(*World)
	done func(*World) string
}

// site is one call of a controller to the API or to etcd.
type site struct {
	name  string
	write bool
}

// ending is what happens to a controller at a call.
type ending struct {
	name  string
	fault CallFault
	// standby is true if another controller takes over at once; a new one is started
	// after a while otherwise.
	standby bool
	// pause is how long the process stands still. Another one takes over meanwhile, and
	// it goes on for a moment before it ends.
	pause time.Duration
	// reads is true if it makes a difference for calls that change nothing, too. After
	// a cut at one of those the world is as it was, as far as others can see.
	reads bool
	// rare is true if it is only tried when the sweep is thorough.
	rare bool
}

// lastWords is how long a process goes on that has lost its lease while it stood still.
const lastWords = 2 * time.Second

// endings are the ways in which every call is cut.
var endings = []ending{
	{name: "killed before it is sent", fault: CrashBefore, reads: true},
	{name: "killed before it is sent, another takes over", fault: CrashBefore, standby: true},
	{name: "killed after it was carried out, the reply is lost", fault: CrashAfter},
	{name: "killed after it was carried out, another takes over", fault: CrashAfter, standby: true},
	{name: "killed after the reply", fault: CrashReply},
	{name: "killed after the reply, another takes over", fault: CrashReply, standby: true},
	{name: "the connection is cut before it is sent", fault: FailBefore},
	{name: "the connection is cut after it was carried out", fault: LoseReply},
	{name: "stopped for 15 s before it, another takes over", fault: PauseBefore, pause: 15 * time.Second},
	{name: "stopped for 15 s after it, another takes over", fault: PauseAfter, pause: 15 * time.Second, rare: true},
	{name: "stopped for 3 s before it, another takes over", fault: PauseBefore, pause: 3 * time.Second, rare: true},
	{name: "killed while it is under way", fault: CrashUnderway, rare: true},
	{name: "killed while it is under way, another takes over", fault: CrashUnderway, standby: true, rare: true},
	{name: "it is carried out after it was given up", fault: Late, rare: true},
	{name: "a read is cut, another takes over", fault: CrashBefore, standby: true, reads: true, rare: true},
	{name: "a read fails", fault: FailBefore, reads: true, rare: true},
	{name: "stopped for 15 s at a read, another takes over", fault: PauseBefore, pause: 15 * time.Second, reads: true, rare: true},
}

// cut is one call of a phase and what happens to the controller there.
type cut struct {
	at  int
	how *ending
}

// tour goes along with a phase. It notes the calls of the controllers and cuts one.
type tour struct {
	underway bool
	sites    []site
	cut      *cut
}

// next notes a call and returns what goes wrong with it, or nil.
func (t *tour) next(c *manager, name string, write bool) *armed {
	if t == nil || !t.underway {
		return nil
	}
	t.sites = append(t.sites, site{name, write})
	if t.cut == nil || t.cut.at != len(t.sites)-1 {
		return nil
	}
	how := t.cut.how
	c.w.standby = how.standby
	if how.pause > 0 {
		c.w.after(time.Millisecond, c.w.takeOver)
		c.w.after(how.pause+lastWords, c.crash)
	}
	return &armed{fault: how.fault, pause: how.pause}
}

// tourResult is what came of a phase that was played.
type tourResult struct {
	sites     []site
	violation *Violation
	trace     []string
	steps     int
}

// play plays a phase. At the end the cluster must be as declared, with all its data.
func (p *phase) play(at *cut, tracing bool) tourResult {
	plan := p.plan
	w := newWorld(&plan, Variant{}, newStats(), tracing)
	w.tour, w.rest = &tour{cut: at}, sweepRest
	w.startManager(0)
	w.after(0, w.beat)
	w.after(0, w.client)
	if !p.unborn {
		w.declare()
		w.reach(w.goal)
	}
	w.tour.underway = true
	for _, s := range p.steps {
		s.do(w)
		w.reach(func() string { return s.done(w) })
	}
	w.tour.underway = false
	if at != nil && at.how.pause > 0 && w.checks.found == nil {
		w.advance(at.how.pause + 2*lastWords) // it has ended by then
	}
	if w.checks.found == nil {
		w.settle()
	}
	if w.checks.found == nil && w.stats.Spec != 1 {
		w.checks.violated("L1", "the cluster ends otherwise than declared: %v", w.stats)
	}
	return tourResult{sites: w.tour.sites, violation: w.checks.found, trace: w.log, steps: w.steps}
}

const (
	// noticeTime is how long a step takes at least: what was done shows by then.
	noticeTime = 5 * time.Second
	reachEvery = 500 * time.Millisecond
	// sweepRest is how long a cluster is watched after a phase.
	sweepRest = 45 * time.Second
)

// reach lets time pass until nothing is missing.
func (w *World) reach(missing func() string) {
	deadline := w.now + settleTime
	w.advance(noticeTime)
	for w.checks.found == nil {
		wrong := missing()
		if wrong == "" {
			return
		}
		if w.now > deadline {
			w.checks.violated("L1", "not reached: %s", wrong)
		}
		w.advance(reachEvery)
	}
}

// gone returns what is left of a cluster that was deleted.
func (w *World) gone() string {
	for k := kind(0); k < kinds; k++ {
		for _, object := range w.store.list(k) {
			return fmt.Sprintf("%s %s is left", kindNames[k], object.GetName())
		}
	}
	return ""
}
