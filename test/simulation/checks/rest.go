// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

const (
	// sayTime is how soon a controller reports what it has observed last.
	sayTime = time.Second
	// restTime is how long a cluster must stay as declared.
	restTime = 2 * time.Minute
	// leastPace is how often a controller looks at a cluster at rest at least.
	leastPace = 40 * time.Second
)

// isStalled is true while the status reports that the cluster waits for a user.
func (c *Checks) isStalled() bool {
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](c.w.Store, kubernetes.KindCluster, schedules.ClusterName)
	return found && slices.ContainsFunc(cluster.Status.Conditions, func(c v1beta2.ClusterCondition) bool {
		return c.Type == v1beta2.ClusterConditionStalled && c.Status == corev1.ConditionTrue
	})
}

// countRestarts counts the restarts of all pods that exist.
func (c *Checks) countRestarts() int {
	n := 0
	for _, object := range c.w.Store.List(kubernetes.KindPod) {
		for _, s := range object.(*corev1.Pod).Status.ContainerStatuses {
			n += int(s.RestartCount)
		}
	}
	return n
}

// podUIDs are the UIDs of all pods that exist.
func (c *Checks) podUIDs() []types.UID {
	var list []types.UID
	for _, object := range c.w.Store.List(kubernetes.KindPod) {
		list = append(list, object.GetUID())
	}
	return list
}

// Rests makes sure that a cluster that is as declared stays so, and that the
// controller writes nothing while it does. It returns false if that must be looked at
// again.
func (c *Checks) Rests() bool {
	// What has made it so may have been a moment ago, and the status has yet to report it.
	c.w.Advance(sayTime)
	only := c.w.Controllers[0]
	writes, reconciles, recovered, stalled := only.Writes, only.Reconciles, c.w.Stats.Recovered, c.isStalled()
	restarts, pods := c.countRestarts(), c.podUIDs()
	c.w.Advance(c.Rest)
	if c.w.Stats.Recovered > recovered {
		return false // a member has come back late, and the cluster has recovered from it
	}
	wrong := c.Goal()
	if wrong == askedToRecover {
		return false // a member has come back late, without a quorum
	}
	if wrong != "" {
		c.w.Violated("L1", "it was as declared, and then: %s", wrong)
		return true
	}
	cluster, _ := kubernetes.Lookup[kubernetes.EtcdCluster](c.w.Store, kubernetes.KindCluster, schedules.ClusterName)
	l := c.recorded[string(cluster.UID)]
	lost := l != nil && l.QuorumLost
	if lost && !slices.Equal(pods, c.podUIDs()) {
		return false // members that do not respond restart as declared, one at a time, and not for ever
	}
	if !stalled && c.isStalled() {
		writes++ // it reports once that the same wait has lasted for too long
	}
	// The status reports that the container of a pod ends, and that it waits for its next start.
	if n := only.Writes - writes - 2*(c.countRestarts()-restarts); n > 0 && (!lost || n > 5) {
		c.w.Violated("L3", "%d writes at rest", n)
	}
	if n := only.Reconciles - reconciles; (n < int(c.Rest/leastPace) && *cluster.Spec.Replicas > 0) || n > 70 {
		c.w.Violated("L3", "%d reconciles at rest in %v", n, c.Rest)
	}
	switch {
	case l == nil:
		c.w.Stats.NeverServed++
	case lost:
		c.w.Stats.Lost++
	default:
		c.w.Stats.Spec++
	}
	return true
}
