// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
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
	})
}
