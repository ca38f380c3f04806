// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// evictLater deletes a pod of a node that does not respond after the time that the pod tolerates that,
// as the taint eviction controller of Kubernetes does.
func (w *World) evictLater(n *Node, pod *corev1.Pod) {
	after, forever := stay(pod)
	if forever {
		return
	}
	since := n.unready
	w.After(after, func() {
		live, found := Lookup[*corev1.Pod](w.Store, KindPod, pod.Name)
		if found && live.UID == pod.UID && n.unready.Equal(since) {
			w.Store.DeletePod(live)
		}
	})
}

// stay is how long a pod tolerates that its node does not respond. The first toleration counts that
// matches the taint.
func stay(pod *corev1.Pod) (after time.Duration, forever bool) {
	i := slices.IndexFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return (t.Key == "" || t.Key == corev1.TaintNodeUnreachable) && (t.Effect == "" || t.Effect == corev1.TaintEffectNoExecute)
	})
	switch {
	case i < 0:
		return 0, false
	case pod.Spec.Tolerations[i].TolerationSeconds == nil:
		return 0, true
	default:
		return time.Duration(max(*pod.Spec.Tolerations[i].TolerationSeconds, 0)) * time.Second, false
	}
}

// limitStay is a policy that limits how long a pod stays on a node that does not respond.
func limitStay(pod *corev1.Pod) {
	pod.Spec.Tolerations = slices.Insert(pod.Spec.Tolerations, 0, corev1.Toleration{
		Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To(int64((schedules.EvictAfter - UnreadyAfter).Seconds())),
	})
}
