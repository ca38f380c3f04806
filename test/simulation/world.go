// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"time"
)

// World is one simulated Kubernetes with one EtcdCluster, its etcd, its clients and
// the controllers. Everything in it happens on one goroutine, in an order that the
// seed decides.
type World struct {
	timeline
	plan    *Schedule
	variant Variant
	dice    *dice

	store       *store
	nodes       []*node
	runs        []*run
	etcd        *etcdWorld
	controllers []*manager
	managers    int
	ips         int

	writes int
	// recoveries counts how often a user asked for one.
	recoveries int
	// backups that are stored, by name, and restores that were asked for.
	backups  map[string]*snapshot
	restores map[string]bool
	// asked holds the backup that each restore was to restore.
	asked map[string]string
	// operations that were asked for.
	operations int
	histories  map[string]*history

	checks *checks
	stats  *Stats
	// disturbances counts what happened that a controller could not know of.
	disturbances int
	disturbedAt  time.Duration
	// slowStart makes pods start slowly until then.
	slowStartUntil time.Duration
	// standby is true if another controller waits to take over from one that ends.
	standby bool
	// tour counts the calls of a phase, and says what happens to one of them.
	tour *tour
	// rest is how long a cluster must stay as declared at the end.
	rest time.Duration
	// quiet is true once no more faults come.
	quiet bool

	log []string
	// tracing is true if the log is kept.
	tracing bool
}

func newWorld(plan *Schedule, variant Variant, stats *Stats, tracing bool) *World {
	w := &World{plan: plan, variant: variant, dice: newDice(plan.Seed, 2), histories: map[string]*history{}, backups: map[string]*snapshot{}, restores: map[string]bool{}, asked: map[string]string{}, stats: stats, tracing: tracing, rest: restTime}
	w.store = newStore(w)
	w.etcd = newEtcdWorld(w)
	w.nodes = newNodes()
	w.checks = newChecks(w)
	return w
}

// trace keeps a line of what happened.
func (w *World) trace(format string, args ...any) {
	if w.tracing {
		w.log = append(w.log, fmt.Sprintf("%9.3fs ", w.now.Seconds())+fmt.Sprintf(format, args...))
	}
}

// disturb notes that something happened that nobody could know of.
func (w *World) disturb() {
	w.disturbances++
	w.disturbedAt = w.now
}

// disturbed is true if something happened since a controller began to look, or so
// shortly before that nobody has noticed.
func (w *World) disturbed(l *look) bool {
	return l.disturbed != w.disturbances || w.now-w.disturbedAt < unnoticed
}

// unnoticed is how long a member may seem to serve after it was cut off.
const unnoticed = 4 * time.Second

// startDelay is how long it takes from the binding of a pod until its container runs.
func (w *World) startDelay() time.Duration {
	if w.now < w.slowStartUntil {
		return w.dice.between(15*time.Second, time.Minute)
	}
	return w.dice.between(100*time.Millisecond, 2*time.Second)
}

// beat is what goes on all the time.
func (w *World) beat() {
	w.after(tickEvery, w.beat)
	w.etcd.tick()
	w.served()
	w.checks.tick()
}
