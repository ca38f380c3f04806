// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "strconv"

// knownClusterID is what the planner knows of the cluster ID when its record no longer exists.
func knownClusterID(id uint64) string {
	if id != 0 {
		return hexID(id)
	}
	return unknownClusterID
}

// unknownClusterID stands in the record of a cluster that was bootstrapped, if its ID
// could not be read when the record was created again.
const unknownClusterID = "unknown"

// hexID returns an ID as etcd and the API write it.
func hexID(id uint64) string { return strconv.FormatUint(id, 16) }
