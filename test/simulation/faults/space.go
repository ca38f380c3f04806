// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// fill lets clients fill the database until etcd rejects writes. After a while a user makes room, in one
// of the ways that the documentation knows.
func (w *World) fill(e schedules.Event) {
	if len(w.Etcd.Processes) == 0 || w.Plan.Joins {
		return
	}
	p := w.Etcd.Processes[e.A%len(w.Etcd.Processes)]
	w.Etcd.Fill(p)
	w.After(e.For, func() {
		if w.Quiet {
			return
		}
		w.Disturb()
		switch e.B % 3 {
		case 0:
			w.raiseQuota()
		case 1: // with etcdctl
			w.Etcd.Compact(p.Dir.Lineage)
			for _, d := range p.Dir.Lineage.Dirs {
				w.Etcd.Defragment(d)
			}
		case 2:
			w.Etcd.Compact(p.Dir.Lineage)
			w.AskForDefrag()
		}
	})
}

// raiseQuota declares twice the quota.
func (w *World) raiseQuota() {
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
	if !found {
		return
	}
	larger := resource.NewQuantity(2*resources.QuotaBackendBytes(cluster), resource.BinarySI)
	w.Change(func(s *v1beta2.ClusterSpec) {
		options := &v1beta2.EtcdOptions{}
		if s.Etcd != nil {
			options = s.Etcd.DeepCopy()
		}
		options.QuotaBackendBytes = larger
		s.Etcd = options
	})
}

// makeRoom ends what no controller ends: a database that is full.
func (w *World) makeRoom() {
	for _, l := range w.Etcd.Lineages {
		w.Etcd.Compact(l)
		for _, d := range l.Dirs {
			w.Etcd.Defragment(d)
		}
	}
}
