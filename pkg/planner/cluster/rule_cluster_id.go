// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "fmt"

// ruleClusterID leaves members of an etcd that is not this cluster alone.
func ruleClusterID(o *Observed) (Plan, bool) {
	id, other := o.Record.ClusterID, o.Etcd.OtherClusterID
	isKnown := id != "" && id != unknownClusterID
	if other == 0 && isKnown && id != hexID(o.Etcd.ClusterID) {
		other = o.Etcd.ClusterID
	}
	if other == 0 {
		return Plan{}, false
	}
	is := "has " + id
	if !isKnown {
		is = "has lost the record of its own. A response counts if the member list behind it names the member of that pod"
	}
	return wait(recheckWaiting, ReasonClusterIDMismatch,
		fmt.Sprintf("the members respond with cluster ID %x and this cluster %s", other, is),
		"Find out which process responds at the addresses of the members."), true
}
