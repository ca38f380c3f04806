// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"

// ruleSteady has nothing to do. It says what the cluster lacks all the same.
func ruleSteady(o *Observed) (Plan, bool) {
	switch {
	case o.ClientService == NotOwned:
		return waitForName(o.Cluster, recheckSteady), true
	case o.PodDisruptionBudget.State == NotOwned && o.Cluster.Spec.PodDisruptionBudget != v1beta2.PodDisruptionBudgetDisabled:
		return wait(recheckSteady, ReasonNameConflict,
			"PodDisruptionBudget "+o.Cluster.Name+" exists and is not owned by this cluster, so evictions may cost the quorum",
			"Delete that PodDisruptionBudget, or set spec.podDisruptionBudget=Disabled."), true
	}
	return Plan{RequeueAfter: recheckSteady}, true
}
