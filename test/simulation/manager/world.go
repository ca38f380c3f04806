// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/apiclock"
	"github.com/etcd-operator/etcd-operator/pkg/controller/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/test/simulation/clients"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
	"github.com/etcd-operator/etcd-operator/test/simulation/timeline"
)

// World is the simulated Kubernetes with clients and with the processes of the
// controller.
type World struct {
	*clients.World
	// Observer is set by what is built on top.
	Observer Observer

	Controllers []*Manager
	managers    int
	// servedFull is when the members whose database was full last served a controller that asked.
	servedFull map[*simetcd.Process]time.Duration
	// Standby is true if another controller waits to take over from one that ends.
	Standby bool
	// Wrap, if set, changes what the reconciler of each controller is given.
	Wrap func(*Manager, cluster.Config) cluster.Config
	// OnCall, if set, receives each call and returns what goes wrong with it, or nil.
	OnCall func(c *Manager, name string, write bool) *Fault
}

// New is a world in which no controller runs.
func New(w *clients.World) *World {
	return &World{World: w, servedFull: map[*simetcd.Process]time.Duration{}}
}

// Observer looks at the calls of the controllers.
type Observer interface {
	// Before and After frame a call that changes something.
	Before(by *Manager, name string)
	After(by *Manager, name string)
	// Writing is called before an object is created or updated, Deleting before one is
	// deleted.
	Writing(by *Manager, verb string, object metav1.Object)
	Deleting(by *Manager, k kubernetes.Kind, name string, only metav1.Preconditions)
	// Changing and Changed frame a change of the member list, Removing comes before a removal.
	Changing(by *Manager, l *simetcd.Lineage)
	Changed(by *Manager, l *simetcd.Lineage, err error)
	Removing(by *Manager, l *simetcd.Lineage, id uint64)
}

// StartManager starts a process whose caches begin up to lag changes behind.
func (w *World) StartManager(lag int) *Manager {
	w.managers++
	c := &Manager{W: w, Name: fmt.Sprintf("controller-%d", w.managers), wakeAt: never, awaited: map[string]time.Duration{}, awaitedEnds: map[string]bool{}}
	c.Cache, c.Skew = w.NewCache(lag), w.skew(schedules.NearSkew)
	local := skewedClock{w.Timeline, c.Skew}
	if w.Plan.Skew > schedules.NearSkew {
		local.by = w.skew(w.Plan.Skew)
	}
	now := apiclock.New(local)
	now.Note(w.Now().Add(c.Skew), local.Now()) // the clock of the kube-apiserver that responds is off, too
	c.Local = local
	c.Cache.Changed = c.enqueue
	config := cluster.Config{
		Cache:       cachePort{c.Cache, w},
		Objects:     objectsPort{c},
		CertManager: noCertManager{},
		Etcd:        etcdPort{c},
		Gate:        reconcile.NewGate(c.Cache.Versions()),
		Recorder:    silence{},
		Waker:       c,
		Background:  c,
		Clock:       now,
		Decide:      w.decide,
		Suffix:      w.Dice.Suffix,
		Responsible: func(*v1beta2.EtcdCluster) bool { return true },
		AgentImage:  "agent",
	}
	if w.Wrap != nil {
		config = w.Wrap(c, config)
	}
	reconciler, err := cluster.NewReconciler(config)
	if err != nil {
		panic(err)
	}
	c.reconciler = reconciler
	w.Controllers = append(w.Controllers, c)
	w.Caches = append(w.Caches, c.Cache)
	c.enqueue()
	return c
}

// skew is by how much the clock of one machine is fast, at most by far.
func (w *World) skew(far time.Duration) time.Duration {
	if w.Plan.Skew == 0 {
		return 0
	}
	return w.Dice.Between(-far, far)
}

type skewedClock struct {
	*timeline.Timeline
	by time.Duration
}

// Now implements clock.PassiveClock.
func (c skewedClock) Now() time.Time { return c.Timeline.Now().Add(c.by) }

// Since implements clock.PassiveClock.
func (c skewedClock) Since(then time.Time) time.Duration { return c.Now().Sub(then) }

// decide is the planner, and counts which rules speak.
func (w *World) decide(o planner.Observed) planner.Plan {
	plan := planner.Decide(o)
	w.Stats.Rules[string(plan.Rule)]++
	return plan
}

// TakeOver starts a process that has waited for its turn: it acts at once, and what it
// knows may be older than what the one before it knew.
func (w *World) TakeOver() {
	next := w.StartManager(w.Dice.IntN(12))
	w.Trace("%s takes over", next.Name)
}

// Served wakes the controllers that wait for members which serve now.
func (w *World) Served() {
	for _, c := range w.Controllers {
		c.ended()
		for _, p := range w.Etcd.Processes {
			until, awaited := c.awaited[p.Run.IP()]
			if !awaited || w.Etcd.IsHidden(p.Run) || !p.Serves {
				continue
			}
			delete(c.awaited, p.Run.IP())
			if w.Elapsed <= until {
				c.enqueue()
			}
		}
	}
}
