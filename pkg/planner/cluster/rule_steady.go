// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// ruleSteady has nothing to do. It says what the cluster lacks all the same.
func ruleSteady(o *Observed) (Plan, bool) {
	switch {
	case o.ClientService == NotOwned:
		return waitForName(o, recheckSteady), true
	case hasBudgetNotOwned(o):
		message, remedy := describeBudgetNotOwned(o.Cluster)
		return wait(recheckSteady, ReasonNameConflict, message, remedy), true
	}
	return Plan{RequeueAfter: recheckSteady}, true
}
