// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// isAutomatic is true of an EtcdRestore that the controller created because a cluster has lost all members. A user who
// sets the annotation on another EtcdRestore only limits that to such a loss.
func (o *Observed) isAutomatic() bool {
	return o.Restore.Annotations[v1beta2.AnnotationAutomaticRestore] != ""
}

// ruleLossEnded keeps an automatic restore to the loss that it was created for. It may wait for its backup for hours.
// Meanwhile a user may have restored other data, created the cluster again, or forbidden automatic recoveries.
func ruleLossEnded(o *Observed) (Plan, bool) {
	if !o.isAutomatic() {
		return Plan{}, false
	}
	plan, c, name := Plan{Phase: v1beta2.RestorePhaseVerifying}, o.Cluster, o.Restore.Spec.EtcdCluster.Name
	hold := func(why string) (Plan, bool) {
		plan.Wait = &Wait{Reason: ReasonAutomaticRestoreHeld, Message: why}
		return plan, true
	}
	switch {
	case c == nil || c.DeletionTimestamp != nil || string(c.UID) != o.Restore.Annotations[v1beta2.AnnotationAutomaticRestore]:
		return plan.failed(ReasonClusterDeleted, fmt.Sprintf("EtcdCluster %s, whose members were lost, was deleted", name)), true
	case o.hasQuorum():
		return plan.failed(ReasonAbandoned, fmt.Sprintf("nothing was changed: EtcdCluster %s serves again, and this restore was created because its quorum was lost", name)), true
	case c.Spec.Recovery == nil || c.Spec.Recovery.QuorumLoss != v1beta2.RecoveryAutomatic:
		return hold(fmt.Sprintf("nothing was changed: spec.recovery.quorumLoss of EtcdCluster %s is not %s any more", name, v1beta2.RecoveryAutomatic))
	case !o.isPermanentlyLost():
		return hold(fmt.Sprintf("nothing was changed: it is not proven now that the quorum of EtcdCluster %s is permanently lost", name))
	default:
		return Plan{}, false
	}
}

// hasQuorum is true if a quorum of the cluster has responded, by a status of the present spec. A cluster of size 0 has
// lost no quorum, and the status may still be from then.
func (o *Observed) hasQuorum() bool {
	return ptr.Deref(o.Cluster.Spec.Replicas, 0) > 0 && slices.ContainsFunc(o.Cluster.Status.Conditions, func(c v1beta2.ClusterCondition) bool {
		return c.Type == v1beta2.ClusterConditionQuorumLost && c.Status == corev1.ConditionFalse && c.ObservedGeneration == o.Cluster.Generation
	})
}
