// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// IsSettled is true if the status says that a cluster has n members and that nothing is left
// to do.
func IsSettled(object *v1beta2.EtcdCluster, n int) bool {
	status := &object.Status
	return status.ObservedGeneration == object.Generation && int(status.Replicas) == n &&
		len(status.Members.Ready) == n && len(status.Members.Unready) == 0 &&
		HasCondition(object, v1beta2.ClusterConditionProgressing, corev1.ConditionFalse)
}

// Condition returns a condition of a cluster, or an empty one.
func Condition(object *v1beta2.EtcdCluster, t v1beta2.ClusterConditionType) v1beta2.ClusterCondition {
	for _, c := range object.Status.Conditions {
		if c.Type == t {
			return c
		}
	}
	return v1beta2.ClusterCondition{}
}

// HasCondition is true if a condition of a cluster has a status.
func HasCondition(object *v1beta2.EtcdCluster, t v1beta2.ClusterConditionType, status corev1.ConditionStatus) bool {
	return Condition(object, t).Status == status
}
