// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

const (
	// SettleTime is how long a cluster has to reach its spec after the last fault. A
	// container that has crashed often is restarted every five minutes only.
	SettleTime = 40 * time.Minute
	settleStep = 5 * time.Second
)

// Settle ends all faults, lets the cluster come to rest and looks at what it has
// come to.
func (w *World) Settle() {
	w.heal()
	deadline := w.Elapsed + SettleTime
	wrong := ""
	for w.Elapsed < deadline && w.Violation == nil {
		w.Advance(settleStep)
		if wrong = w.Checks.Goal(); wrong != "" {
			continue
		}
		if w.Checks.Rests() {
			return
		}
	}
	if w.Violation == nil {
		w.Violated("L1", "%v after the last fault: %s", SettleTime, wrong)
	}
}

// heal ends everything that still goes wrong, and what only a person would end.
func (w *World) heal() {
	w.Quiet = true
	w.Disturb()
	w.Trace("the faults end")
	clear(w.Etcd.Cut)
	clear(w.Etcd.Unreachable)
	w.Etcd.ResumeAll()
	w.Etcd.Slow, w.SlowStartUntil = 0, 0
	w.Admission.Admit()
	w.Rejoin(w.Nodes)
	for _, n := range w.Nodes {
		w.Cordon(n, false)
		if !n.Up && !n.Lost {
			w.BootNode(n)
		}
	}
	for len(w.Controllers) > 1 {
		w.Controllers[len(w.Controllers)-1].Stop()
	}
	for _, c := range w.Controllers {
		c.Cache.Thaw()
		c.Faults = nil
	}
	if len(w.Controllers) == 0 {
		w.StartManager(0)
	}
	if old, found := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName); !found || old.DeletionTimestamp != nil {
		w.CreateCluster()
	}
	w.Change(func(s *v1beta2.ClusterSpec) { s.Paused = false })
	w.Repair()
	w.giveUpWiped()
}
