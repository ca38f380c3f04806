// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/planner/recovery"
)

// ruleHibernate deletes the pods of a cluster of size 0. Members and PVCs stay. It needs no
// quorum: data on a PVC is not lost, and a member without a PVC is never touched. A PVC that is being deleted is none:
// it goes with its pod, so a user must act.
func ruleHibernate(o *Observed) (Plan, bool) {
	if desiredSize(o.Cluster) != 0 {
		return Plan{}, false
	}
	plan := Plan{Actions: deleteHibernated(o)}
	if doomed := listDoomed(o); len(doomed) > 0 {
		plan.RequeueAfter = recheckSteady
		plan.Wait = &Wait{ReasonVolumesBeingDeleted, "spec.size is 0, and PVCs are being deleted: " + strings.Join(doomed, ", ") + ". Their pods stay, because the data is lost with them",
			saveDoomed}
	}
	for i := range o.Pods {
		p := &o.Pods[i]
		if !p.Owned || evidenceOf(p) != diagnosis.DeletionRequested {
			continue
		}
		plan.RequeueAfter = recheckSteady // no event comes when its end is overdue
		if plan.Wait == nil && recovery.IsEndOverdue(o.Now, p.EndsBy) {
			plan.Wait = &Wait{ReasonWaitingForPod, "spec.size is 0, and a member may still serve: " + diagnosis.MissingEnd(p.Name, p.Node), "Bring the node back. " + diagnosis.ConfirmNodeOff}
			break
		}
	}
	return plan, true
}

// deleteHibernated deletes the pods that have a PVC.
func deleteHibernated(o *Observed) []Action {
	var actions []Action
	for i := range o.Pods {
		p := &o.Pods[i]
		if p.Owned && !p.Terminating && pvcByName(o.PVCs, p.Name) != nil {
			actions = append(actions, DeletePod{Name: p.Name, UID: p.UID, Why: DeleteHibernated})
		}
	}
	return actions
}
