// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// hasBudgetNotOwned is true while the PodDisruptionBudget of the cluster cannot be created, because that of another
// owner, such as an earlier cluster, has its name.
func hasBudgetNotOwned(o *Observed) bool {
	return o.PodDisruptionBudget.State == NotOwned && o.Cluster.Spec.PodDisruptionBudget != v1beta2.PodDisruptionBudgetDisabled && desiredSize(o.Cluster) > 0
}

// describeBudgetNotOwned says what is found, and what ends it.
func describeBudgetNotOwned(cluster *v1beta2.EtcdCluster) (message, remedy string) {
	return "PodDisruptionBudget " + cluster.Name + " exists and is not owned by this cluster, so evictions may cost the quorum",
		"Delete that PodDisruptionBudget, or set spec.podDisruptionBudget=Disabled."
}

// budgetAsDeclared is False while no budget of the cluster limits evictions, and does not exist otherwise. Nothing waits
// for it, so the condition stands beside whatever the cluster waits for.
func budgetAsDeclared(o *Observed, _ Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionBudgetAsDeclared
	if !hasBudgetNotOwned(o) {
		return v1beta2.ClusterCondition{Type: t}
	}
	message, remedy := describeBudgetNotOwned(o.Cluster)
	return is(t, corev1.ConditionFalse, ReasonNotOwned, message+". "+remedy)
}
