// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// drainTime is how long nothing else may have failed until a drain must have ended.
const drainTime = 10 * time.Minute

// Drained makes sure that a drain that lasted has moved the member of a small cluster that is as
// declared. Otherwise the status says why: no other node takes its successor, or Kubernetes
// rejects the pod of the successor.
func (c *Checks) Drained(n *kubernetes.Node) {
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](c.w.Store, kubernetes.KindCluster, schedules.ClusterName)
	if !found || c.w.Elapsed-c.w.DisturbedAt < drainTime || !n.Hears() || cluster.Spec.Paused || *cluster.Spec.Replicas == 0 ||
		!kubernetes.ConditionIs(cluster, v1beta2.ClusterConditionReady, corev1.ConditionTrue) {
		return
	}
	left := ""
	c.w.EachPodOn(n, func(pod *corev1.Pod) { left = pod.Name })
	if left == "" {
		c.w.Stats.Drained++
		return
	}
	explained := slices.ContainsFunc(cluster.Status.Conditions, func(c v1beta2.ClusterCondition) bool {
		return c.Type == v1beta2.ClusterConditionOnCordonedNode && c.Reason == string(planner.ReasonNoOtherNode)
	})
	rejected := cluster.Status.BlockedBy != nil && cluster.Status.BlockedBy.Reason == v1beta2.ReasonPodRejected
	if !explained && !rejected {
		c.w.Violated("L1", "pod %s is still on the node that is drained", left)
	}
}
