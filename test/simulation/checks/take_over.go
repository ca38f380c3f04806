// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// removingOld checks that old members of an etcd that is taken over go on request only, and that the
// members of the cluster vote before.
func (c *Checks) removingOld(l *simetcd.Lineage, p *simetcd.Process) {
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](c.w.Store, kubernetes.KindCluster, schedules.ClusterName)
	if !found || cluster.Existing() == nil || cluster.Existing().OldMembers != v1beta2.OldMembersRemove {
		c.w.Violated("S2", "removal of old member %s, which no user has requested", p.Run.Name())
		return
	}
	own := l.Members.Voters()
	for _, old := range c.w.Etcd.OldMembers() {
		if l.Members.IsVoter(old.Dir.Id) {
			own--
		}
	}
	if size := int(*cluster.Spec.Replicas); own < size && !c.isResizing() {
		c.w.Violated("S2", "removal of old member %s: %d of %d members of the cluster vote", p.Run.Name(), own, size)
	}
}

// isResizing is true if the desired size changed a moment ago.
func (c *Checks) isResizing() bool { return c.w.Elapsed-c.sizeChanged < 2*time.Minute }
