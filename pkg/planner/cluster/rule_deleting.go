// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// ruleDeleting deletes what belongs to a cluster that is being deleted. Without the
// finalizer, which is removed last, nothing is left to do.
func ruleDeleting(o *Observed) (Plan, bool) {
	if o.Cluster.DeletionTimestamp == nil {
		return Plan{}, false
	}
	if !hasFinalizer(o.Cluster) {
		return Plan{}, true
	}
	return Plan{Actions: []Action{FinishDeletion{}}, RequeueAfter: recheckWaiting}, true
}
