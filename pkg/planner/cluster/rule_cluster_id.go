// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

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
	is, remedy := "has "+id, rowOf(ReasonClusterIDMismatch).Remedy
	if !isKnown {
		is = "has lost the record of its own. A response counts if the member list behind it names the member of that pod, or if the status names that learner with its ID"
		if id := o.Etcd.LearnerClusterID; id != 0 { // that of another response was disproved
			remedy += fmt.Sprintf(" If the learner with cluster ID %x is a member of this cluster, write %x as clusterID into ConfigMap %s.", id, id, resources.RecordName(o.Cluster))
		}
	}
	return wait(recheckWaiting, ReasonClusterIDMismatch,
		fmt.Sprintf("the members respond with cluster ID %x and this cluster %s", other, is), remedy), true
}
