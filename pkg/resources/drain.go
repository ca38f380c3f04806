// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// drainSeconds is how long a member continues to serve after Kubernetes has decided to
// stop it. Nodes learn shortly after the EndpointSlices that the client Service no longer
// leads to the member. A connection that is made meanwhile must not be rejected: the client
// would wait for a second or longer before it tries another member.
const drainSeconds = 1

// drainHook returns what the kubelet does before it stops a member, whatever asked for
// that. It is nil where the grace period leaves no time for it.
func drainHook(c *v1beta2.EtcdCluster) *corev1.Lifecycle {
	if ptr.Deref(podPolicy(c).TerminationGracePeriodSeconds, defaultTerminationGrace) <= drainSeconds {
		return nil
	}
	return &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: drainSeconds}}}
}
