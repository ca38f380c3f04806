// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

// Existing returns the running etcd that the cluster takes over, or nil.
func (c *EtcdCluster) Existing() *ExistingEtcd {
	if c.Spec.Bootstrap == nil {
		return nil
	}
	return c.Spec.Bootstrap.Existing
}

// IsDeletionProtected is true while the API server rejects the deletion of the cluster.
func (c *EtcdCluster) IsDeletionProtected() bool {
	return c.Spec.DeletionProtection != nil && *c.Spec.DeletionProtection
}

// TakesVolumesBack is true for a cluster that begins with the PVCs of an earlier cluster of its name.
func (c *EtcdCluster) TakesVolumesBack() bool {
	return c.Spec.Bootstrap != nil && c.Spec.Bootstrap.FromVolumes != nil
}
