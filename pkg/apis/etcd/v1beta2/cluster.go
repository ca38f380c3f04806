// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import "slices"

// Existing returns the running etcd that the cluster takes over, or nil.
func (c *EtcdCluster) Existing() *ExistingEtcd {
	if c.Spec.Bootstrap == nil {
		return nil
	}
	return c.Spec.Bootstrap.Existing
}

// MayHaveOldMembers is true for a cluster that takes over a running etcd, until a status says
// that only members of its own are left.
func (c *EtcdCluster) MayHaveOldMembers() bool {
	known := c.Status.MemberStatuses
	return c.Existing() != nil && (len(known) == 0 || slices.ContainsFunc(known, func(m MemberStatus) bool { return m.Unmanaged }))
}

// IsDeletionProtected is true while the API server rejects the deletion of the cluster.
func (c *EtcdCluster) IsDeletionProtected() bool {
	return c.Spec.DeletionProtection != nil && *c.Spec.DeletionProtection
}

// TakesVolumesBack is true for a cluster that begins with the PVCs of an earlier cluster of its name.
func (c *EtcdCluster) TakesVolumesBack() bool {
	return c.Spec.Bootstrap != nil && c.Spec.Bootstrap.FromVolumes != nil
}
