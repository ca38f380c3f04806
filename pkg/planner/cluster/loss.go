// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// isPermanentlyLost is true while it is proven that the quorum cannot come back.
func isPermanentlyLost(o *Observed) bool {
	return !o.Etcd.Linearizable && isBootstrapped(o) && desiredSize(o.Cluster) != 0 && diagnoseQuorumLoss(o).Permanent
}

// HasPermanentLoss is true if the quorum counts as permanently lost, unless the node of a member that does
// not respond turns out not to be ready.
func HasPermanentLoss(o *Observed) bool { return isPermanentlyLost(o) }

// HasCertainLoss is true if it is certain that the quorum is lost, permanently or not.
func HasCertainLoss(o *Observed) bool {
	return !o.Etcd.Linearizable && isBootstrapped(o) && desiredSize(o.Cluster) != 0 && diagnoseQuorumLoss(o).Certain
}

// permanentLossSince returns since when the loss is proven without a break; nil while it is
// not. The time is that of the status in which it was first written, so that another
// controller goes on counting from it. Rounding is up: no recovery begins too soon.
func permanentLossSince(o *Observed) *metav1.Time {
	if !isPermanentlyLost(o) {
		return nil
	}
	if since := o.Cluster.Status.PermanentQuorumLossSince; since != nil {
		return since.DeepCopy()
	}
	now := metav1.NewTime(o.Now.Add(time.Second - time.Nanosecond).Truncate(time.Second))
	return &now
}
