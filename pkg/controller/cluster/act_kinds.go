// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"

// makesPod is true for an action that creates a pod or its PVC.
func makesPod(action planner.Action) bool {
	switch action.(type) {
	case planner.CreateSeed, planner.CreatePod, planner.PreparePod, planner.CreateClaim, planner.CreateReseed:
		return true
	default:
		return false
	}
}

// isUpkeep is true for an action whose failure keeps no other one from being done.
func isUpkeep(action planner.Action) bool {
	switch a := action.(type) {
	case planner.RepairPeerService, planner.EnsureClientService, planner.EnsurePodDisruptionBudget,
		planner.DeletePodDisruptionBudget, planner.LabelPod, planner.RepairClaim, planner.FindMember, planner.IssueAuthority,
		planner.DropAuthority, planner.IssueCertificate, planner.RequestCertificate, planner.RefreshPod, planner.PreparePod, planner.MarkObject:
		return true
	case planner.DeletePod:
		return a.Prepared
	case planner.DeleteClaim:
		return a.Prepared
	default:
		return false
	}
}
