// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/kind"
)

func newScale(store *genericregistry.Store) *kind.ScaleREST[*v1beta2.EtcdCluster] {
	return kind.NewScaleREST(store, kind.Scalable[*v1beta2.EtcdCluster]{
		Resource:     v1beta2.Resource("etcdclusters"),
		GroupVersion: v1beta2.SchemeGroupVersion,
		// The JSON name: the Go field is Replicas.
		Path:      fieldpath.MakePathOrDie("spec", "size"),
		Wanted:    func(c *v1beta2.EtcdCluster) int32 { return ptr.Deref(c.Spec.Replicas, 0) },
		SetWanted: func(c *v1beta2.EtcdCluster, replicas int32) { c.Spec.Replicas = &replicas },
		Observed:  func(c *v1beta2.EtcdCluster) int32 { return c.Status.Replicas },
		Selector:  func(c *v1beta2.EtcdCluster) string { return c.Status.Selector },
		Unsafe:    unsafeScale,
	})
}

// unsafeScale says why a cluster must not be scaled to a size now, by its last status. The
// controller waits all the same where that is behind; here who asks is told at once.
func unsafeScale(c *v1beta2.EtcdCluster, size int32) string {
	if size == 0 {
		return "" // nothing leaves etcd, so that needs no quorum
	}
	if quorumIsLost(c) {
		return "the quorum is lost, and members join and leave only through one: get etcdclusters/" + c.Name + "/health for what to do"
	}
	steps := c.Status.Replicas - size
	if steps <= 1 {
		return "" // one that does not serve is the first to go
	}
	for i := range c.Status.MemberStatuses {
		m := &c.Status.MemberStatuses[i]
		votes := m.Role == v1beta2.MemberRoleLeader || m.Role == v1beta2.MemberRoleFollower
		if votes && m.Healthy != corev1.ConditionTrue {
			return fmt.Sprintf("member %s does not serve: while that is so, at most one member may leave at a time, so not fewer than %d may be asked for", m.Name, c.Status.Replicas-1)
		}
	}
	return ""
}
