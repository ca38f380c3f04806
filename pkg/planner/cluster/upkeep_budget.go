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
// another is counted before it votes. While a voter leaves, the budget may keep one more; the
// controller raises it right before the voter stops. A cluster of size 0 has a budget while the data of a voter goes with its pod.
func upkeepBudget(o *Observed, plan Plan) []Action {
	budget := o.PodDisruptionBudget
	if o.Cluster.Spec.PodDisruptionBudget == v1beta2.PodDisruptionBudgetDisabled || desiredSize(o.Cluster) == 0 && len(listDoomed(o)) == 0 {
		if budget.State == Current || budget.State == Drifted {
			return []Action{DeletePodDisruptionBudget{}}
		}
		return nil
	}
	if !o.Etcd.Linearizable || budget.State == NotOwned {
		return nil
	}
	live := len(listVoters(o.Etcd.Members))
	if slices.ContainsFunc(plan.Actions, addsVoter) {
		live++
	}
	voters := max(live, desiredSize(o.Cluster))
	quorum := diagnosis.Quorum(voters)
	if others := countServingUnmanaged(o); others > 0 && takesOver(o.Cluster) {
		// Their votes count, and no eviction of a pod of this cluster ends them.
		quorum = max(quorum-others, diagnosis.Quorum(max(live-len(listUnmanaged(o.Etcd.Members)), desiredSize(o.Cluster))))
	}
	if findCorrupt(o.Etcd.Members) != nil && !isPersistent(o.Cluster) {
		quorum = max(quorum, live) // an eviction would take data along that may be the right one
	}
	if budget.State == Current && budget.MinAvailable >= quorum && budget.MinAvailable <= quorum+countDraining(o.Etcd.Members, o.Pods, plan) {
		return nil
	}
	return []Action{EnsurePodDisruptionBudget{MinAvailable: quorum}}
}

// upkeepRecoveryBudget guards the recovery member until it is behind the Services. It begins when the recovery member runs
// with the data of a member, which may not come back, or with the cutover of a restore.
func upkeepRecoveryBudget(o *Observed, plan Plan) []Action {
	exists := o.RecoveryBudget == Current || o.RecoveryBudget == Drifted
	switch guards := guardsRecoveryMember(o, plan, exists); {
	case guards && (o.RecoveryBudget == Missing || o.RecoveryBudget == Drifted):
		return []Action{GuardRecoveryMember{}}
	case !guards && exists:
		return []Action{UnguardRecoveryMember{}}
	default:
		return nil
	}
}

func guardsRecoveryMember(o *Observed, plan Plan, exists bool) bool {
	if o.Cluster.Spec.PodDisruptionBudget == v1beta2.PodDisruptionBudgetDisabled {
		return false
	}
	begins, ends := false, false
	for _, a := range plan.Actions {
		switch a := a.(type) {
		case RecordRecovery:
			begins = begins || a.Recovery.Phase == v1beta2.RecoveryPhaseCutover
		case DeleteRecoveryMember:
			ends = true
		}
	}
	r, p := o.Record.Recovery, o.RecoveryMember.Pod
	cutOver := r.IsInProgress() && (r.Phase == v1beta2.RecoveryPhaseCutover || r.Phase == v1beta2.RecoveryPhaseCleaning)
	filled := r.IsInProgress() && r.Phase == v1beta2.RecoveryPhaseFilling && r.Trigger != v1beta2.RecoveryTriggerRestore &&
		p != nil && !p.Terminating && !ends && (p.Running || exists) // a container that starts again and again must not end it each time
	return begins || (cutOver || filled) && o.RecoveryMember.Hidden
}

// countDraining is 1 while a voter stops for a while, or for ever, by a decision of the controller.
func countDraining(members []Member, pods []Pod, plan Plan) int {
	for _, m := range listVoters(members) {
		if p := podByName(pods, m.Name); !isGone(p) && (m.Name == plan.Draining || p.Role == PodDraining) {
			return 1
		}
	}
	return 0
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
