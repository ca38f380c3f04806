// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "fmt"

// ruleClusterID leaves members of an etcd that is not this cluster alone.
func ruleClusterID(o *Observed) (Plan, bool) {
	id := o.Record.ClusterID
	if id == "" || id == unknownClusterID || o.Etcd.ClusterID == 0 || id == hexID(o.Etcd.ClusterID) {
		return Plan{}, false
	}
	return wait(recheckWaiting, ReasonClusterIDMismatch,
		fmt.Sprintf("the members respond with cluster ID %x and this cluster has %s", o.Etcd.ClusterID, id),
		"Find out which process responds at the addresses of the members."), true
}
