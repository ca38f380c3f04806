// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller"
	"github.com/etcd-operator/etcd-operator/pkg/controller/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

const (
	namespace   = "ns"
	clusterName = "c"
)

var key = types.NamespacedName{Namespace: namespace, Name: clusterName}

// The back-off after an error is that of the controller's queue.
const (
	retryBase = 50 * time.Millisecond
	retryMax  = 30 * time.Second
)

// manager is one process of the controller: the real Reconciler with caches, a gate
// and a queue of its own.
type manager struct {
	w          *World
	name       string
	cache      *cache
	reconciler *cluster.Reconciler
	dead, busy bool
	// wakeAt is when the queue hands out the key next; generation tells its timers
	// apart.
	wakeAt     time.Duration
	generation int
	failures   int
	// again is true if the key was put on the queue while it was worked on.
	again bool

	armed []*armed
	// ending is true if the process ends before its next call.
	ending    bool
	deadlines map[context.Context]time.Duration
	awaited   map[string]time.Duration
	// awaitedEnds are the addresses of processes whose end is awaited.
	awaitedEnds map[string]bool
	task        task
	// writes counts calls that change something, reconciles the runs.
	writes, reconciles int
	// second is the one that runs, and withinSecond counts the reconciles in it.
	second       time.Duration
	withinSecond int
	look         look
}

const never = time.Duration(1<<63 - 1)

// startManager starts a process whose caches begin up to lag changes behind.
func (w *World) startManager(lag int) *manager {
	w.managers++
	c := &manager{w: w, name: fmt.Sprintf("controller-%d", w.managers), wakeAt: never, awaited: map[string]time.Duration{}, awaitedEnds: map[string]bool{}}
	c.cache = newCache(w, lag)
	c.cache.changed = c.enqueue
	config := cluster.Config{
		Cache:       c.cache,
		Objects:     objectsPort{c},
		CertManager: noCertManager{},
		Etcd:        etcdPort{c},
		Gate:        controller.NewGate(c.cache.versions()),
		Recorder:    silence{},
		Waker:       c,
		Background:  c,
		Clock:       &w.timeline,
		Decide:      w.decide,
		Suffix:      w.dice.suffix,
		Responsible: func(*v1beta2.EtcdCluster) bool { return true },
		AgentImage:  "agent",
	}
	if w.variant.wrap != nil {
		config = w.variant.wrap(c, config)
	}
	reconciler, err := cluster.NewReconciler(config)
	if err != nil {
		panic(err)
	}
	c.reconciler = reconciler
	w.controllers = append(w.controllers, c)
	c.enqueue()
	return c
}

// decide is the planner, and counts which rules speak.
func (w *World) decide(o planner.Observed) planner.Plan {
	plan := planner.Decide(o)
	w.stats.Rules[plan.Rule]++
	return plan
}

// stop ends the process.
func (c *manager) stop() {
	c.dead = true
	c.cache.closed = true
	for i, other := range c.w.controllers {
		if other == c {
			c.w.controllers = append(c.w.controllers[:i:i], c.w.controllers[i+1:]...)
			return
		}
	}
}

// enqueue puts the key on the queue.
func (c *manager) enqueue() { c.wake(time.Millisecond) }

// wake puts the key on the queue in d, unless it is due before.
func (c *manager) wake(d time.Duration) {
	if c.busy && d <= time.Millisecond {
		c.again = true
		return
	}
	at := c.w.now + d
	if at >= c.wakeAt {
		return
	}
	c.wakeAt = at
	c.generation++
	generation := c.generation
	c.w.after(d, func() {
		if c.generation == generation && !c.dead && !c.busy {
			c.reconcile()
		}
	})
}

// reconcile runs the real code once.
func (c *manager) reconcile() {
	c.wakeAt, c.busy, c.again = never, true, false
	c.deadlines = map[context.Context]time.Duration{}
	c.look = look{started: c.w.now, disturbed: c.w.disturbances}
	if mine, err := c.cache.Cluster(namespace, clusterName); err == nil {
		c.look.owner = string(mine.UID)
	}
	c.reconciles++
	c.w.stats.Reconciles++
	c.noteSpin()
	result, err, survived := c.run()
	c.busy = false
	if !survived || c.ending {
		c.crash()
		return
	}
	switch {
	case err != nil:
		if !errors.Is(err, context.DeadlineExceeded) {
			c.w.trace("%s: %v", c.name, err)
		}
		delay := retryMax
		if c.failures < 10 {
			delay = min(retryMax, retryBase<<c.failures)
		}
		c.failures++
		c.wake(delay)
	case result.RequeueAfter > 0:
		c.failures = 0
		c.wake(result.RequeueAfter)
	default:
		c.failures = 0
	}
	if c.again {
		c.enqueue()
	}
}

// spinning is how many reconciles within a second are work no more.
const spinning = 500

// noteSpin finds a controller that does the same again and again without a pause.
func (c *manager) noteSpin() {
	if second := c.w.now.Truncate(time.Second); second != c.second {
		c.second, c.withinSecond = second, 0
	}
	if c.withinSecond++; c.withinSecond == spinning {
		c.w.checks.violated("L3", "%d reconciles within a second", spinning)
	}
}

func (c *manager) run() (result cluster.Result, err error, survived bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, expected := r.(crashed); !expected {
				panic(r)
			}
			survived = false
		}
	}()
	result, err = c.reconciler.Reconcile(context.Background(), key)
	return result, err, true
}

// crash ends the process; another one starts in its place.
func (c *manager) crash() {
	if c.dead {
		return
	}
	c.stop()
	c.w.trace("%s ended", c.name)
	if c.w.standby {
		c.w.takeOver()
		return
	}
	c.w.after(c.w.dice.between(200*time.Millisecond, 10*time.Second), func() {
		if len(c.w.controllers) == 0 {
			next := c.w.startManager(c.w.dice.IntN(6))
			c.w.trace("%s started", next.name)
		}
	})
}

// takeOver starts a process that has waited for its turn: it acts at once, and what it
// knows may be older than what the one before it knew.
func (w *World) takeOver() {
	next := w.startManager(w.dice.IntN(12))
	w.trace("%s takes over", next.name)
}

// Await implements cluster.Waker.
func (c *manager) Await(_ types.NamespacedName, _ etcd.Target, endpoint etcd.Endpoint) {
	c.awaited[addressOf(endpoint)] = c.w.now + 30*time.Second
}

// AwaitEnd implements cluster.Waker.
func (c *manager) AwaitEnd(_ types.NamespacedName, _ etcd.Target, endpoint etcd.Endpoint) {
	c.awaitedEnds[addressOf(endpoint)] = true
}

// ended wakes a controller that waits for a member which serves no more.
func (c *manager) ended() {
	for ip := range c.awaitedEnds {
		if c.w.etcd.serving(ip) == nil {
			delete(c.awaitedEnds, ip)
			c.enqueue()
		}
	}
}

// served wakes the controllers that wait for members which serve now.
func (w *World) served() {
	for _, c := range w.controllers {
		c.ended()
		for _, p := range w.etcd.processes {
			until, awaited := c.awaited[p.run.ip]
			if !awaited || w.etcd.hidden(p.run) || !p.serves {
				continue
			}
			delete(c.awaited, p.run.ip)
			if w.now <= until {
				c.enqueue()
			}
		}
	}
}

// silence is a recorder that drops events.
type silence struct{}

// Eventf implements cluster.Recorder.
func (silence) Eventf(runtime.Object, string, string, string, ...any) {}
