// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// PodDisruptionBudget returns the budget that keeps evictions from leaving fewer than
// minAvailable voters. It counts pods that are labelled as voting and ready, one that is
// leaving among them: it votes until it was removed. MinAvailable is a number instead
// of a percentage, because a percentage needs a controller that Kubernetes can ask for
// a scale.
//
// It must be raised before a promotion, and before the controller stops a voter; it may be
// lowered after a removal. Pods that are not ready are evicted only while the quorum stands
// without them: a member that lost its quorum may hold the last copy of the data.
func PodDisruptionBudget(c *v1beta2.EtcdCluster, minAvailable int) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: objectMeta(c, c.Name, nil, nil),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt(minAvailable)),
			Selector: &metav1.LabelSelector{
				MatchLabels: Labels(c.Name),
				MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: LabelRole, Operator: metav1.LabelSelectorOpIn, Values: []string{RoleDraining, RoleVoter}},
				},
			},
			UnhealthyPodEvictionPolicy: ptr.To(policyv1.IfHealthyBudget),
		},
	}
}

// HasPodDisruptionBudgetDrifted is true if live differs from what it should be in more
// than the number of pods that it keeps.
func HasPodDisruptionBudgetDrifted(c *v1beta2.EtcdCluster, live *policyv1.PodDisruptionBudget) bool {
	want := PodDisruptionBudget(c, 0)
	want.Spec.MinAvailable = live.Spec.MinAvailable
	_, drifted := BudgetDrift(c, live, want)
	return drifted
}

// RecoveryBudgetName returns the name of RecoveryBudget. The name of a cluster has no dot, so no
// cluster has a budget of this name.
func RecoveryBudgetName(cluster string) string { return cluster + ".recovery" }

// RecoveryBudget returns the budget that rejects each eviction of the recovery member until it is behind
// the Services. From the cutover until then its pod may hold the only copy of the data. Kubernetes
// rejects an eviction that two budgets count; the other one counts no recovery member.
func RecoveryBudget(c *v1beta2.EtcdCluster) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: objectMeta(c, RecoveryBudgetName(c.Name), nil, nil),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable:               ptr.To(intstr.FromInt(1)),
			Selector:                   &metav1.LabelSelector{MatchLabels: RecoveryLabels(c.Name)},
			UnhealthyPodEvictionPolicy: ptr.To(policyv1.IfHealthyBudget),
		},
	}
}

// BudgetDrift returns live as it should be, which is want, and whether that is a change: a copy if
// it is, live itself if not.
func BudgetDrift(c *v1beta2.EtcdCluster, live, want *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, bool) {
	pdb := *live
	pdb.ObjectMeta = editableMeta(&live.ObjectMeta)
	changed := putAll(&pdb.Labels, want.Labels)
	changed = MarkOwned(c, &pdb) || changed
	if !isSame(&live.Spec, &want.Spec) {
		pdb.Spec = want.Spec
		changed = true
	}
	if !changed {
		return live, false
	}
	return pdb.DeepCopy(), true
}
