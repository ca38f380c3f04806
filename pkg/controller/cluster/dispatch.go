// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"reflect"

	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// effects lists every action of the planner with the function that carries it out, by the
// file that holds the function. It is the only way from a plan to an effect.
var effects = index(
	// act_dissolve.go: the finalizer, and the end of a cluster
	on(hold),
	on(dissolve),
	on(forgetRestore).upkeep(),
	// act_marks.go: labels and annotations that name the cluster of an object
	on(markObject).upkeep(),
	// act_found.go: objects of an earlier cluster of the same name
	on(takeBack),
	// act_record.go: the record of the cluster
	on(writeRecord),
	on(recordBootstrap),
	on(recordDeclaration).upkeep(),
	on(recordPutBack),
	on(recordCorruptVoters).upkeep(),
	on(writeRemoval).upkeep(),
	// act_services.go: the headless Service and the client Service
	on(createPeerService),
	on(repairPeerService).upkeep(),
	on(ensureClientService).upkeep(),
	// act_budget.go: PodDisruptionBudgets
	on(ensureBudget).upkeep(),
	on(deleteBudget).upkeep(),
	on(guardRecoveryMember).upkeep(),
	on(unguardRecoveryMember).upkeep(),
	// act_pods.go: pods of members
	on(createBootstrapPod).createsPod(),
	on(createMemberPod).createsPod(),
	on(deletePod).upkeepIf(func(a planner.Action) bool {
		d, is := a.(planner.DeletePod)
		return is && d.Why == planner.DeletePrepared
	}),
	on(labelPod).upkeep(),
	on(findMember).upkeep(),
	// act_prepared.go: pods that wait until their member is added
	on(preparePod).createsPod().upkeep(),
	on(admitPod),
	// act_pvcs.go: PVCs of members
	on(createBootstrapPVC).createsPod(),
	on(repairPVC).upkeep(),
	on(confirmPVC),
	on(releasePVC),
	on(deletePVC).upkeepIf(func(a planner.Action) bool {
		d, is := a.(planner.DeletePVC)
		return is && d.Why == planner.DeletePVCPrepared
	}),
	// act_rollout.go: restarts of members
	on(upgradePod),
	on(recreatePod),
	// act_membership.go: members of etcd
	on(addMember),
	on(promoteMember),
	on(removeMember),
	on(moveLeader),
	// act_log.go: the raft log before an upgrade
	on(recordLog),
	on(forceSnapshot),
	// act_operation.go: operations that a user requested
	on(defragment),
	// act_alarms.go: alarms of etcd
	on(disarmNoSpace).upkeep(),
	// act_certificates.go, act_requests.go: certificates
	on(issueCA).upkeep(),
	on(dropCA).upkeep(),
	on(issueCertificate).upkeep(),
	on(requestCertificate).upkeep(),
	on(refreshPod).upkeep(),
	// act_clients.go: Secrets of applications
	on(writeClientSecret).upkeep(),
	on(deleteClientSecret).upkeep(),
	// act_recovery.go, act_volume.go, act_decommission.go: recovery after permanent quorum loss, and restores
	on(recordRecovery),
	on(createRecoveryMember).createsPod(),
	on(stopSource),
	on(proveWrite),
	on(deleteRecoveryMember),
	on(fenceOldMembers),
	on(publishRecoveryMember),
	on(cleanUpOldPVCs),
	// act_restore.go: the EtcdRestore of a cluster that has lost all members
	on(requestRestore),
)

// effect carries out the actions of one type.
type effect struct {
	action   reflect.Type
	carryOut func(ctx context.Context, r *run, action planner.Action) error
	// pod is true if the action creates a pod or its PVC.
	pod bool
	// keep is true for an action whose failure does not stop the rest of the plan.
	keep func(planner.Action) bool
}

// on returns the effect of the actions that f takes.
func on[A planner.Action](f func(context.Context, *run, A) error) effect {
	return effect{
		action: reflect.TypeFor[A](),
		carryOut: func(ctx context.Context, r *run, action planner.Action) error {
			a, is := action.(A)
			if !is {
				return fmt.Errorf("the effect of %T was given a %T", a, action)
			}
			return f(ctx, r, a)
		},
		keep: func(planner.Action) bool { return false },
	}
}

// createsPod marks an action that creates a pod or its PVC: it waits after failures.
func (e effect) createsPod() effect {
	e.pod = true
	return e
}

// upkeep marks an action whose failure does not stop the rest of the plan.
func (e effect) upkeep() effect {
	return e.upkeepIf(func(planner.Action) bool { return true })
}

// upkeepIf is upkeep for some actions of the type.
func (e effect) upkeepIf(keep func(planner.Action) bool) effect {
	e.keep = keep
	return e
}

func index(list ...effect) map[reflect.Type]effect {
	byType := map[reflect.Type]effect{}
	for _, e := range list {
		byType[e.action] = e
	}
	return byType
}

// effectOf returns the effect of an action. An action without one fails.
func effectOf(action planner.Action) effect {
	if e, known := effects[reflect.TypeOf(action)]; known {
		return e
	}
	return effect{
		carryOut: func(context.Context, *run, planner.Action) error {
			return fmt.Errorf("action %T has no effect", action)
		},
		keep: func(planner.Action) bool { return false },
	}
}

// isUpkeep is true for an action whose failure does not stop the rest of the plan.
func isUpkeep(action planner.Action) bool { return effectOf(action).keep(action) }

// createsPod is true for an action that creates a pod or its PVC.
func createsPod(action planner.Action) bool { return effectOf(action).pod }

// carryOut carries out one action.
func carryOut(ctx context.Context, r *run, action planner.Action) error {
	return effectOf(action).carryOut(ctx, r, action)
}
