// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"strconv"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// ReportedMemberID returns the ID of a member of the cluster as the status has it; 0 if it has none. No name of a
// member comes back with another ID, so whatever else responds at its address is no member of the cluster.
func ReportedMemberID(c *v1beta2.EtcdCluster, name string) uint64 {
	for i := range c.Status.MemberStatuses {
		if m := &c.Status.MemberStatuses[i]; m.Name == name && !m.Unmanaged {
			id, _ := strconv.ParseUint(m.ID, 16, 64) // what is no ID proves nothing
			return id
		}
	}
	return 0
}
