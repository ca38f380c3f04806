// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
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
			w.deleteUnownedRecord()
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

// deleteUnownedRecord is a person that does what the status asks for. A record without an owner
// keeps the name of the record: that of an earlier cluster, or that of this cluster after users have
// removed all that tells whose it is.
func (w *World) deleteUnownedRecord() {
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
	record, exists := kubernetes.Lookup[*corev1.ConfigMap](w.Store, kubernetes.KindRecord, schedules.RecordName)
	if !found || !exists || simetcd.OwnerOf(record) != "" || cluster.Status.BlockedBy == nil || cluster.Status.BlockedBy.Reason != string(planner.ReasonNameConflict) {
		return
	}
	w.Trace("a person deletes the ConfigMap that has the name of the record")
	w.Store.Remove(kubernetes.KindRecord, schedules.RecordName)
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
