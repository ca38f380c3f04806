// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
)

// goalOperation: a requested operation comes to an end, whatever happened meanwhile, and
// reports the result for each member.
func (c *Checks) goalOperation(cluster *v1beta2.EtcdCluster, _ *simetcd.Lineage) string {
	op := cluster.Status.Operation
	if !op.IsOver() {
		return fmt.Sprintf("operation %s is %s: %+v", op.ID, op.Phase, op.Results)
	}
	if op == nil {
		return ""
	}
	for _, r := range op.Results {
		if r.State != v1beta2.OperationSucceeded && r.State != v1beta2.OperationFailed {
			return fmt.Sprintf("operation %s is over and member %s is %s", op.ID, r.Member, r.State)
		}
	}
	for _, m := range cluster.Status.MemberStatuses {
		if op.Type == v1beta2.OperationReplace && op.Phase == v1beta2.OperationSucceeded && op.ID != c.endedBefore && slices.Contains(op.Members, m.Name) {
			return fmt.Sprintf("operation %s succeeded and member %s is a member", op.ID, m.Name)
		}
	}
	if (len(op.Results) == 0 && op.Message == "") || op.CompletionTime == nil {
		return fmt.Sprintf("operation %s is over and says nothing", op.ID)
	}
	return ""
}

func (c *Checks) goalStatus(cluster *v1beta2.EtcdCluster, l *simetcd.Lineage) string {
	s := &cluster.Status
	size := *cluster.Spec.Replicas
	leader := ""
	for _, p := range c.w.Etcd.Processes {
		if p.Dir.Lineage == l && p.Leads() {
			leader = p.Run.Name()
		}
	}
	wrong := s.Phase != v1beta2.ClusterPhaseRunning || s.Replicas != size || len(s.Members.Ready) != int(size) ||
		len(s.Members.Unready) != 0 || s.Leader != leader || ptr.Deref(s.Tolerance, -1) != (size-1)/2 ||
		s.ObservedGeneration != cluster.Generation || s.ControlPaused ||
		!kubernetes.ConditionIs(cluster, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue) ||
		!kubernetes.ConditionIs(cluster, v1beta2.ClusterConditionQuorumLost, corev1.ConditionFalse) ||
		!kubernetes.ConditionIs(cluster, v1beta2.ClusterConditionDegraded, corev1.ConditionFalse)
	if !c.waitsWithVersion(cluster) {
		wrong = wrong || s.BlockedBy != nil || s.CurrentVersion != resources.Version(cluster) ||
			!kubernetes.ConditionIs(cluster, v1beta2.ClusterConditionProgressing, corev1.ConditionFalse)
	}
	if wrong {
		return fmt.Sprintf("the status says %+v", *s)
	}
	return ""
}
