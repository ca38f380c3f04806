// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/controller/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// The back-off after an error is that of the controller's queue.
const (
	retryBase = 50 * time.Millisecond
	retryMax  = 30 * time.Second
)

// Manager is one process of the controller: the real Reconciler with caches, a gate
// and a queue of its own.
type Manager struct {
	W    *World
	Name string
	// Skew is by how much its clock is fast, which follows the kube-apiserver. Local is the clock of
	// its machine.
	Skew              time.Duration
	Local             clock.PassiveClock
	Cache             *kubernetes.Cache
	reconciler        *cluster.Reconciler
	dead, reconciling bool
	// wakeAt is when the queue hands out the key next; generation tells its timers
	// apart.
	wakeAt     time.Duration
	generation int
	failures   int
	// again is true if the key was put on the queue while it was worked on.
	again bool

	Faults []*Fault
	// Paused is true while a fault stops the process.
	Paused bool
	// ending is true if the process ends before its next call.
	ending    bool
	deadlines map[context.Context]time.Duration
	awaited   map[string]time.Duration
	// awaitedEnds are the addresses of processes whose end is awaited.
	awaitedEnds map[string]bool
	task        task
	// Writes counts calls that change something, reconciles the runs.
	Writes, Reconciles int
	// second is the one that runs, and withinSecond counts the reconciles in it.
	second       time.Duration
	withinSecond int
	Observed     Observation
}

const never = time.Duration(1<<63 - 1)

// Stop ends the process.
func (c *Manager) Stop() {
	c.dead = true
	c.Cache.Closed = true
	c.W.Caches = slices.DeleteFunc(slices.Clone(c.W.Caches), func(other *kubernetes.Cache) bool { return other == c.Cache })
	for i, other := range c.W.Controllers {
		if other == c {
			c.W.Controllers = append(c.W.Controllers[:i:i], c.W.Controllers[i+1:]...)
			return
		}
	}
}

// enqueue puts the key on the queue.
func (c *Manager) enqueue() { c.wake(time.Millisecond) }

// wake puts the key on the queue in d, unless it is due before.
func (c *Manager) wake(d time.Duration) {
	if c.reconciling && d <= time.Millisecond {
		c.again = true
		return
	}
	at := c.W.Elapsed + d
	if at >= c.wakeAt {
		return
	}
	c.wakeAt = at
	c.generation++
	generation := c.generation
	c.W.After(d, func() {
		if c.generation == generation && !c.dead && !c.reconciling {
			c.reconcile()
		}
	})
}

// reconcile runs the real code once.
func (c *Manager) reconcile() {
	c.wakeAt, c.reconciling, c.again = never, true, false
	c.deadlines = map[context.Context]time.Duration{}
	c.Observed = Observation{Started: c.W.Elapsed, Disturbed: c.W.Disturbances}
	if mine, err := c.Cache.Cluster(schedules.Namespace, schedules.ClusterName); err == nil {
		c.Observed.Owner = string(mine.UID)
	}
	c.Reconciles++
	c.W.Stats.Reconciles++
	c.noteSpin()
	after, err, survived := c.run()
	c.reconciling = false
	if !survived || c.ending {
		c.Crash()
		return
	}
	switch {
	case err != nil:
		if !errors.Is(err, context.DeadlineExceeded) {
			c.W.Trace("%s: %v", c.Name, err)
		}
		delay := retryMax
		if c.failures < 10 {
			delay = min(retryMax, retryBase<<c.failures)
		}
		c.failures++
		c.wake(delay)
	case after > 0:
		c.failures = 0
		c.wake(after)
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
func (c *Manager) noteSpin() {
	if second := c.W.Elapsed.Truncate(time.Second); second != c.second {
		c.second, c.withinSecond = second, 0
	}
	if c.withinSecond++; c.withinSecond == spinning {
		c.W.Violated("L3", "%d reconciles within a second", spinning)
	}
}

func (c *Manager) run() (after time.Duration, err error, survived bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, expected := r.(crashed); !expected {
				panic(r)
			}
			survived = false
		}
	}()
	after, err = c.reconciler.Reconcile(context.Background(), schedules.Key)
	return after, err, true
}

// Crash ends the process; another process starts in its place.
func (c *Manager) Crash() {
	if c.dead {
		return
	}
	c.Stop()
	c.W.Trace("%s ended", c.Name)
	if c.W.Standby {
		c.W.TakeOver()
		return
	}
	c.W.After(c.W.Dice.Between(200*time.Millisecond, 10*time.Second), func() {
		if len(c.W.Controllers) == 0 {
			next := c.W.StartManager(c.W.Dice.IntN(6))
			c.W.Trace("%s started", next.Name)
		}
	})
}

// Await implements cluster.Waker.
func (c *Manager) Await(_ types.NamespacedName, _ etcd.Target, endpoint etcd.Endpoint) {
	c.awaited[addressOf(endpoint)] = c.W.Elapsed + 30*time.Second
}

// AwaitEnd implements cluster.Waker.
func (c *Manager) AwaitEnd(_ types.NamespacedName, _ etcd.Target, endpoint etcd.Endpoint) {
	c.awaitedEnds[addressOf(endpoint)] = true
}

// ended wakes a controller that waits for a member which serves no more.
func (c *Manager) ended() {
	for ip := range c.awaitedEnds {
		if c.W.Etcd.Serving(ip) == nil {
			delete(c.awaitedEnds, ip)
			c.enqueue()
		}
	}
}

// silence is a recorder that drops events.
type silence struct{}

// Eventf implements cluster.Recorder.
func (silence) Eventf(runtime.Object, string, string, string, ...any) {}
