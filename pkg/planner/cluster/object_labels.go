// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"

// addFinalizer puts the finalizer on the cluster. It comes before everything that is created,
// because PVCs, Secrets and the record have no owner that would take them along.
func addFinalizer(cluster *v1beta2.EtcdCluster, plan Plan) []Action {
	if plan.Rule == "deleting" || hasFinalizer(cluster) {
		return nil
	}
	return []Action{AddFinalizer{}}
}

// labelObjects returns the actions that have every object say whose it is and whether the cluster
// is protected. They change no member, so they go along with whatever else is done, also
// while the cluster is paused: protection must not depend on that. What upkeep repairs is
// marked by the repair.
func labelObjects(o *Observed, plan Plan) []Action {
	if plan.Rule == "deleting" {
		return nil
	}
	var actions []Action
	for _, object := range o.Unlabeled {
		held := object.Kind == KindPod && mayRestartBesideOthers(o, podByName(o.Pods, object.Name))
		if !held && (!keepsUp(o, plan) || !isRepairedByUpkeep(o.PVCs, object)) {
			actions = append(actions, LabelObject{Object: object})
		}
	}
	return actions
}

// isRepairedByUpkeep is true for an object that upkeep marks.
func isRepairedByUpkeep(pvcs []PVC, object Object) bool {
	switch object.Kind {
	case KindService:
		return true
	case KindPVC:
		return pvcByName(pvcs, object.Name) != nil
	case KindBudget, KindPod, KindSecret, KindRecord:
		return false
	default:
		return false
	}
}
