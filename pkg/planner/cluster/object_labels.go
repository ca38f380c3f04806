// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// ObjectKind is the kind of an object of a cluster.
type ObjectKind string

// Values of ObjectKind.
const (
	KindPod     ObjectKind = "pod"
	KindPVC     ObjectKind = "PVC"
	KindService ObjectKind = "service"
	KindRecord  ObjectKind = "record"
	KindBudget  ObjectKind = "pod disruption budget"
	KindSecret  ObjectKind = "secret"
)

// Object names an object of a cluster.
type Object struct {
	Kind      ObjectKind
	Name, UID string
}

// held is true if the finalizer is on the cluster.
func (o *Observed) held() bool { return slices.Contains(o.Cluster.Finalizers, resources.Finalizer) }

// addFinalizer puts the finalizer on the cluster. It comes before everything that is created,
// because PVCs, Secrets and the record have no owner that would take them along.
func (o *Observed) addFinalizer(plan Plan) []Action {
	if plan.Rule == "deleting" || o.held() {
		return nil
	}
	return []Action{AddFinalizer{}}
}

// marks returns the actions that have every object say whose it is and whether the cluster
// is protected. They change no member, so they go along with whatever else is done, also
// while the cluster is paused: protection must not depend on that. What upkeep repairs is
// marked by the repair.
func (o *Observed) marks(plan Plan) []Action {
	if plan.Rule == "deleting" {
		return nil
	}
	var actions []Action
	for _, object := range o.Unlabeled {
		if !o.keepsUp(plan) || !o.repairedByUpkeep(object) {
			actions = append(actions, LabelObject{Object: object})
		}
	}
	return actions
}

// repairedByUpkeep is true for an object that upkeep marks.
func (o *Observed) repairedByUpkeep(object Object) bool {
	switch object.Kind {
	case KindService:
		return true
	case KindPVC:
		return o.pvc(object.Name) != nil
	case KindBudget, KindPod, KindSecret, KindRecord:
		return false
	default:
		return false
	}
}
