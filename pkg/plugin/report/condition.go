// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// repeated maps conditions that summarize others to those that say more.
var repeated = map[v1beta2.ClusterConditionType][]v1beta2.ClusterConditionType{
	v1beta2.ClusterConditionReady: {
		v1beta2.ClusterConditionStalled, v1beta2.ClusterConditionReconciling, v1beta2.ClusterConditionAvailable, v1beta2.ClusterConditionDegraded,
		v1beta2.ClusterConditionVolumesAsDeclared, v1beta2.ClusterConditionServiceAsDeclared, v1beta2.ClusterConditionClientsAsDeclared,
	},
	v1beta2.ClusterConditionStalled: {v1beta2.ClusterConditionQuorumLost},
	v1beta2.ClusterConditionReconciling: {
		v1beta2.ClusterConditionProgressing, v1beta2.ClusterConditionUpgrading, v1beta2.ClusterConditionScaling, v1beta2.ClusterConditionRecovering,
		v1beta2.ClusterConditionQuorumLost,
	},
	// Without a quorum the controller does nothing but wait for it, or recover.
	v1beta2.ClusterConditionProgressing: {
		v1beta2.ClusterConditionUpgrading, v1beta2.ClusterConditionScaling, v1beta2.ClusterConditionRecovering, v1beta2.ClusterConditionQuorumLost,
	},
	v1beta2.ClusterConditionAvailable: {v1beta2.ClusterConditionQuorumLost},
	// It repeats that etcd rejects writes.
	v1beta2.ClusterConditionDegraded: {v1beta2.ClusterConditionQuorumLost, v1beta2.ClusterConditionAvailable},
}

// Faults returns the conditions that are not as they are at rest, without the work of the
// controller. A condition that only summarizes another one of them is left out.
func Faults(cluster *v1beta2.EtcdCluster) []v1beta2.ClusterCondition {
	return unusual(cluster, func(c v1beta2.ClusterCondition) bool { return !v1beta2.IsWork(string(c.Type)) })
}

// Work returns the conditions that say what the controller works on.
func Work(cluster *v1beta2.EtcdCluster) []v1beta2.ClusterCondition {
	return unusual(cluster, func(c v1beta2.ClusterCondition) bool { return v1beta2.IsWork(string(c.Type)) })
}

func unusual(cluster *v1beta2.EtcdCluster, include func(v1beta2.ClusterCondition) bool) []v1beta2.ClusterCondition {
	shown := map[v1beta2.ClusterConditionType]bool{}
	for _, c := range cluster.Status.Conditions {
		shown[c.Type] = !isAtRest(c)
	}
	var list []v1beta2.ClusterCondition
	available := ConditionOf(cluster, v1beta2.ClusterConditionAvailable)
	for _, c := range cluster.Status.Conditions {
		said := slices.ContainsFunc(repeated[c.Type], func(t v1beta2.ClusterConditionType) bool { return shown[t] }) ||
			c.Type == v1beta2.ClusterConditionStalled && shown[available.Type] && c.Reason == available.Reason
		if shown[c.Type] && !said && include(c) {
			list = append(list, c)
		}
	}
	return list
}

// isAtRest is true if a condition is as it is while all is well. That a hibernated cluster is
// not available, and that a new one is not yet, is no fault.
func isAtRest(c v1beta2.ClusterCondition) bool {
	if c.Type == v1beta2.ClusterConditionAvailable && (c.Reason == "Hibernated" || c.Reason == "Creating") {
		return true
	}
	usual := v1beta2.UsualStatus(string(c.Type))
	return usual == "" || c.Status == usual // what a condition of another author means is not known
}
