// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// explorer checks the states of one part of a space.
type explorer struct {
	t *testing.T
	// found are the states of the part, states those of them that are checked.
	found, states, statuses int64
	// decided holds the names of the rules that have decided.
	decided map[RuleName]bool
}

func TestEveryState(t *testing.T) {
	type job struct {
		space space
		first int
	}
	jobs := make(chan job)
	var states, statuses atomic.Int64
	var decided sync.Map // the names of the rules that have decided
	var workers sync.WaitGroup
	start := time.Now()
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for j := range jobs {
				e := &explorer{t: t, decided: map[RuleName]bool{}}
				multisets(j.space.shapes, j.space.members, j.first, func(m []shape) { e.visit(j.space, m) })
				states.Add(e.states)
				statuses.Add(e.statuses)
				for rule := range e.decided {
					decided.Store(rule, true)
				}
			}
		})
	}
	for _, s := range spaces() {
		for first := range s.shapes {
			jobs <- job{s, first}
		}
	}
	close(jobs)
	workers.Wait()
	t.Logf("%d states, %d statuses, %v", states.Load(), statuses.Load(), time.Since(start).Round(10*time.Millisecond))
	for _, rule := range Rules() {
		if rule == "operation" {
			continue // it takes steps of its own through the same states; see TestRuleOperation
		}
		if rule == RuleRestartTogether {
			continue // it decides while certificates are lost, which TestLostSecrets of the simulation enumerates
		}
		if _, found := decided.Load(rule); !found && !testing.Short() && !raceEnabled {
			t.Errorf("rule %s never decides: nothing here tests it", rule)
		}
	}
}

func (e *explorer) visit(s space, members []shape) {
	if e.t.Failed() {
		return
	}
	o := newObserved()
	for _, around := range s.situations {
		for size := 0; size <= 5; size++ {
			for leader := -1; leader < len(members); leader++ {
				for _, linearizable := range []bool{true, false} {
					e.check(surroundings{size, leader, linearizable, around}, members, o)
				}
			}
		}
	}
}

func (e *explorer) check(s surroundings, members []shape, o *Observed) {
	e.found++
	if e.found%*statesEvery != 0 {
		return
	}
	s.build(members, o)
	TakeUpStarted(o) // as the controller does before it decides
	f := countFacts(o, s.situation != newborn)
	plan := Decide(*o)
	e.states++
	e.decided[plan.Rule] = true
	for _, i := range planInvariants {
		if wrong := i.check(f, plan); wrong != "" {
			e.t.Errorf("%s: %s\nplan: %s\nstate: %s", i.name, wrong, describe(plan), s.describe(members))
		}
	}
	if e.states%statusEvery != 0 {
		return
	}
	status := Status(*o, plan)
	if wrong := checkStatus(f, status); wrong != "" {
		e.t.Errorf("%s\nplan: %s\nstate: %s", wrong, describe(plan), s.describe(members))
	}
	e.statuses++
	if e.statuses%restEvery == 0 {
		e.checkRest(s, members, o, status)
	}
}

// checkRest makes sure that a status that was written is not written again.
func (e *explorer) checkRest(s surroundings, members []shape, o *Observed, status v1beta2.ClusterStatus) {
	before := o.Cluster.Status
	defer func() { o.Cluster.Status = before }()
	o.Cluster.Status, o.Now = status, testNow.Add(time.Minute)
	second := Status(*o, Decide(*o))
	o.Cluster.Status = second
	third := Status(*o, Decide(*o))
	o.Now = testNow
	if diff := cmp.Diff(second, third); diff != "" {
		e.t.Errorf("the status does not come to rest (-before +after):\n%s\nstate: %s", diff, s.describe(members))
	}
}
