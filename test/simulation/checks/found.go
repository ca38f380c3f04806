// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// TakenBack is called when a person has a cluster go on with the data of an earlier one: what that one
// acknowledged counts from now on as acknowledged by the new one.
func (c *Checks) TakenBack(from, to string) {
	for _, l := range c.w.Etcd.Lineages {
		if l.Owner == from {
			l.Owner = to
		}
	}
	if l := c.recorded[from]; l != nil {
		c.recorded[to] = l
		delete(c.recorded, from)
	}
	if h := c.w.Histories[from]; h != nil {
		c.w.Histories[to] = h
		delete(c.w.Histories, from)
	}
	c.Published[to] = c.Published[from]
	delete(c.Published, from)
}

// beginningEmpty makes sure that no controller begins an empty cluster beside the data of an earlier one.
func (c *Checks) beginningEmpty(by *manager.Manager, pod *corev1.Pod) {
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](c.w.Store, kubernetes.KindCluster, schedules.ClusterName)
	if !found || !resources.Owns(cluster, pod) || pod.Annotations[resources.AnnotationInitialState] != "new" {
		return
	}
	for _, object := range c.w.Store.List(kubernetes.KindPVC) {
		pvc := object.(kubernetes.PVC)
		d := c.w.Etcd.PVCs[string(pvc.UID)]
		if d != nil && d.Lineage != nil && resources.IsLabelled(pvc, cluster.Name) && resources.MayHoldFormerMember(cluster, pvc) {
			c.w.Violated("S1", "%s begins empty with pod %s beside PVC %s, which holds a member of an earlier cluster of this name", by.Name, pod.Name, pvc.Name)
		}
	}
}
