// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "strconv"

// knownClusterID is what the planner knows of the cluster ID when its record no longer exists.
func (o *Observed) knownClusterID() string {
	if o.Etcd.ClusterID != 0 {
		return strconv.FormatUint(o.Etcd.ClusterID, 16)
	}
	return unknownClusterID
}

// unknownClusterID stands in the record of a cluster that was bootstrapped, if its ID
// could not be read when the record was created again.
const unknownClusterID = "unknown"

func (o *Observed) clusterID() string { return strconv.FormatUint(o.Etcd.ClusterID, 16) }
