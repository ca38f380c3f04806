// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// upkeepBudget guards the quorum of the live or of the desired voters, whichever are more,
// so that a cluster that grows or shrinks is always guarded. A member that replaces
// another is counted before it votes.
func upkeepBudget(o *Observed, plan Plan) []Action {
	budget := o.PodDisruptionBudget
	if o.Cluster.Spec.PodDisruptionBudget == v1beta2.PodDisruptionBudgetDisabled || o.size() == 0 {
		if budget.State == Current || budget.State == Drifted {
			return []Action{DeletePodDisruptionBudget{}}
		}
		return nil
	}
	if !o.Etcd.Linearizable || budget.State == NotOwned {
		return nil
	}
	live := len(o.voters())
	if slices.ContainsFunc(plan.Actions, addsVoter) {
		live++
	}
	voters := max(live, o.size())
	if budget.State == Current && budget.MinAvailable == diagnosis.Quorum(voters) {
		return nil
	}
	return []Action{EnsurePodDisruptionBudget{Voters: voters}}
}

func addsVoter(a Action) bool {
	switch a := a.(type) {
	case PromoteMember:
		return true
	case AddMember:
		return a.As == JoinAsVoter
	default:
		return false
	}
}
