// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// toleratesCordon is true for a pod that Kubernetes also places on cordoned nodes. To replace it
// would bring nothing: its successor may come to the same node.
func toleratesCordon(p *corev1.Pod) bool {
	cordon := &corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	return slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(klog.Logger{}, cordon, false) })
}
