// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// listDoomed returns the PVCs that are being deleted while the pod of their voter exists. Kubernetes deletes them, and the data
// on them, when that pod ends. It takes no deletion back.
func listDoomed(o *Observed) []string {
	var doomed []string
	for i := range o.PVCs {
		c := &o.PVCs[i]
		pod := podByName(o.Pods, c.Name)
		removed := o.Etcd.Linearizable && memberByName(o.Etcd.Members, c.Name) == nil
		if c.Owned && c.Terminating && !removed && !isGone(pod) && pod.Role != PodLearner {
			doomed = append(doomed, c.Name)
		}
	}
	return doomed
}

// volumesAsDeclared is False while a PVC that a voter needs is being deleted, is smaller than declared, or has another
// VolumeAttributesClass.
func volumesAsDeclared(o *Observed, _ Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionVolumesAsDeclared
	if !isPersistent(o.Cluster) {
		return v1beta2.ClusterCondition{}
	}
	var rejected, grows, differ []string
	why := ""
	for i := range o.PVCs {
		c := &o.PVCs[i]
		if !c.Owned || c.Terminating {
			continue
		}
		if c.OtherAttributes {
			differ = append(differ, c.Name)
		}
		switch c.Growth {
		case resources.GrownEnough:
			continue
		case resources.GrowthRejected:
			rejected = append(rejected, c.Name)
		case resources.GrowthDue, resources.GrowthUnderWay:
			grows = append(grows, c.Name)
		}
		if why == "" && c.GrowthWhy != "" {
			why = ": " + c.GrowthWhy
		}
	}
	ending := ""
	if doomed := listDoomed(o); len(doomed) > 0 {
		ending = "PVCs that are being deleted: " + strings.Join(doomed, ", ") +
			". Each is lost with its data when its pod ends. Store a backup, then have other members replace these with kubectl etcd replace."
	}
	switch {
	case len(rejected) > 0: // first: the API accepts the old size again because of this reason
		return is(t, corev1.ConditionFalse, v1beta2.ReasonGrowthRejected, strings.TrimSpace("Kubernetes rejects the growth of the PVCs "+strings.Join(rejected, ", ")+why+
			". Declare the old size again. Or allow the growth and remove the annotation "+resources.AnnotationGrowthRejected+" from these PVCs. "+ending))
	case ending != "":
		return is(t, corev1.ConditionFalse, ReasonVolumesBeingDeleted, ending)
	case len(grows) > 0:
		return is(t, corev1.ConditionFalse, ReasonGrowing, "PVCs that are smaller than declared and grow: "+strings.Join(grows, ", ")+why)
	case len(differ) > 0:
		class := *o.Cluster.Spec.Pod.PersistentVolumeClaimSpec.VolumeAttributesClassName
		return is(t, corev1.ConditionFalse, ReasonAttributesDiffer, "PVCs whose volumeAttributesClassName is not the declared "+class+": "+strings.Join(differ, ", ")+
			". Only PVCs of new members get it from the controller. Set it with kubectl patch pvc NAME --type=merge -p '{\"spec\":{\"volumeAttributesClassName\":\""+class+
			"\"}}'. If Kubernetes does not keep it, it serves no VolumeAttributesClasses: remove the field from the cluster.")
	default:
		return is(t, corev1.ConditionTrue, ReasonAsDeclared, "")
	}
}
