// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// rulePaused does nothing but keep the status.
func rulePaused(o *Observed) (Plan, bool) {
	return Plan{RequeueAfter: recheckSteady}, o.Cluster.Spec.Paused
}
