// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// tolerations returns the tolerations of a member's pod: those of the user that do not limit how
// long the pod stays on a node that does not respond. It adds those with which the pod stays there.
// Kubernetes would delete the pod after five minutes, or after the user's seconds. If the node is
// only cut off, its kubelet then ends a member that serves, with its data if it has no volume, as
// soon as the node hears of it. The controller replaces such a member, after the same time and only
// while the others are a quorum: see rule replace of the planner.
//
// Kubernetes takes the first toleration that matches a taint, so one with a limit before ours would
// count. It is left out wherever it stands. One for all taints is left out, too: a pod that leaves
// every tainted node after some time can have no use for another taint.
func tolerations(c *v1beta2.EtcdCluster) []corev1.Toleration {
	list := unlimited(podPolicy(c).DeepCopy().Tolerations)
	for _, key := range v1beta2.NodeLossTaints() {
		if !slices.ContainsFunc(list, func(t corev1.Toleration) bool { return v1beta2.MatchesNodeLoss(&t, key) }) {
			list = append(list, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})
		}
	}
	return list
}

// unlimited returns the tolerations of list that do not limit how long a pod stays on a node that
// does not respond, in list itself.
func unlimited(list []corev1.Toleration) []corev1.Toleration {
	return slices.DeleteFunc(list, func(t corev1.Toleration) bool { return v1beta2.LimitsStay(&t) })
}
