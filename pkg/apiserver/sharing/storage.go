// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package sharing

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// WatchCaches lets the EtcdClusters in the watch cache of a getter share equal parts. The getter
// must use watch caches.
func WatchCaches(getter generic.RESTOptionsGetter) generic.RESTOptionsGetter {
	return sharingGetter{RESTOptionsGetter: getter}
}

type sharingGetter struct{ generic.RESTOptionsGetter }

// GetRESTOptions implements generic.RESTOptionsGetter.
func (g sharingGetter) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := g.RESTOptionsGetter.GetRESTOptions(resource, example)
	if _, ok := example.(*v1beta2.EtcdCluster); err != nil || !ok {
		return options, err
	}
	options.Decorator = newCachedStorage
	return options, nil
}

// newCachedStorage returns a storage with a watch cache, as the generic server has it. Only the
// watch cache and its lists share parts: what a request reads from etcd may be changed.
func newCachedStorage(
	config *storagebackend.ConfigForResource, prefix string, keyFunc func(obj runtime.Object) (string, error),
	newFunc func() runtime.Object, newListFunc func() runtime.Object, attributes storage.AttrFunc,
	triggers storage.IndexerFuncs, indexers *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	raw, destroyRaw, err := generic.NewRawStorage(config, newFunc, newListFunc, prefix)
	if err != nil {
		return nil, nil, err
	}
	sharing := sharingStorage{Interface: raw, clusters: NewClusters()}
	cached, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage:             sharing,
		Versioner:           storage.APIObjectVersioner{},
		GroupResource:       config.GroupResource,
		EventsHistoryWindow: config.EventsHistoryWindow,
		ResourcePrefix:      prefix,
		KeyFunc:             keyFunc,
		NewFunc: func() runtime.Object {
			empty := sharing.clusters.newCluster(&v1beta2.EtcdCluster{})
			return &empty
		},
		NewListFunc:  func() runtime.Object { return &ClusterList{} },
		GetAttrsFunc: attributesOf(attributes),
		IndexerFuncs: triggers,
		Indexers:     indexers,
		Codec:        config.Codec,
	})
	if err != nil {
		destroyRaw()
		return nil, nil, fmt.Errorf("watch cache: %w", err)
	}
	delegator := cacher.NewCacheDelegator(cached, sharing)
	return clusterStorage{delegator}, sync.OnceFunc(func() {
		delegator.Stop()
		cached.Stop()
		destroyRaw()
	}), nil
}

// attributesOf returns the labels and fields of what the watch cache holds. No selector can name a
// condition.
func attributesOf(of storage.AttrFunc) storage.AttrFunc {
	return func(obj runtime.Object) (labels.Set, fields.Set, error) {
		if cluster, ok := obj.(*Cluster); ok {
			obj = &cluster.content.cluster
		}
		return of(obj)
	}
}

// clusterStorage is the storage with the watch cache. It expands what a request reads from the watch
// cache, unless the request reads into a ClusterList.
type clusterStorage struct{ storage.Interface }

// NewList returns a list for GetList that takes little memory.
func (s clusterStorage) NewList() runtime.Object { return &ClusterList{} }

// Get implements storage.Interface.
func (s clusterStorage) Get(ctx context.Context, key string, options storage.GetOptions, out runtime.Object) error {
	cluster, ok := out.(*v1beta2.EtcdCluster)
	if !ok || options.ResourceVersion == "" {
		// The watch cache is not read without a version.
		return s.Interface.Get(ctx, key, options, out)
	}
	found := &Cluster{}
	err := s.Interface.Get(ctx, key, options, found)
	*cluster = v1beta2.EtcdCluster{}
	if err == nil && found.content != nil {
		found.expandInto(cluster)
	}
	return err
}

// GetList implements storage.Interface.
func (s clusterStorage) GetList(ctx context.Context, key string, options storage.ListOptions, out runtime.Object) error {
	list, ok := out.(*v1beta2.EtcdClusterList)
	if !ok {
		return s.Interface.GetList(ctx, key, options, out)
	}
	found := &ClusterList{}
	if err := s.Interface.GetList(ctx, key, options, found); err != nil {
		return err
	}
	found.expandInto(list)
	return nil
}
