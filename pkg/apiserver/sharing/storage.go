// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package sharing

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// pageSize is how many objects the watch cache decodes before they share parts. A decoded object
// takes three times the memory.
const pageSize = 1000

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
// watch cache shares parts: what a request reads from etcd may be changed.
func newCachedStorage(
	config *storagebackend.ConfigForResource, prefix string, keyFunc func(obj runtime.Object) (string, error),
	newFunc func() runtime.Object, newListFunc func() runtime.Object, attributes storage.AttrFunc,
	triggers storage.IndexerFuncs, indexers *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	raw, destroyRaw, err := generic.NewRawStorage(config, newFunc, newListFunc, prefix)
	if err != nil {
		return nil, nil, err
	}
	cached, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage:             cacheSource{Interface: raw, clusters: NewClusters()},
		Versioner:           storage.APIObjectVersioner{},
		GroupResource:       config.GroupResource,
		EventsHistoryWindow: config.EventsHistoryWindow,
		ResourcePrefix:      prefix,
		KeyFunc:             keyFunc,
		NewFunc:             newFunc,
		NewListFunc:         newListFunc,
		GetAttrsFunc:        attributes,
		IndexerFuncs:        triggers,
		Indexers:            indexers,
		Codec:               config.Codec,
	})
	if err != nil {
		destroyRaw()
		return nil, nil, fmt.Errorf("watch cache: %w", err)
	}
	delegator := cacher.NewCacheDelegator(cached, raw)
	return delegator, sync.OnceFunc(func() {
		delegator.Stop()
		cached.Stop()
		destroyRaw()
	}), nil
}

// cacheSource is etcd as the watch cache reads it: its objects share equal parts.
type cacheSource struct {
	storage.Interface
	clusters *Clusters
}

// GetList implements storage.Interface. A page may have fewer objects than desired; its token leads
// to the next ones.
func (s cacheSource) GetList(ctx context.Context, key string, options storage.ListOptions, out runtime.Object) error {
	options.Predicate.Limit = min(options.Predicate.Limit, pageSize)
	if err := s.Interface.GetList(ctx, key, options, out); err != nil {
		return err
	}
	if list, ok := out.(*v1beta2.EtcdClusterList); ok {
		for i := range list.Items {
			s.clusters.share(&list.Items[i])
		}
	}
	return nil
}

// Watch implements storage.Interface.
func (s cacheSource) Watch(ctx context.Context, key string, options storage.ListOptions) (watch.Interface, error) {
	events, err := s.Interface.Watch(ctx, key, options)
	if err != nil {
		return nil, err
	}
	return s.share(events), nil
}

// share returns a watch with the same events. Package watch has a filter that does the same, but its
// goroutine does not end if the reader stops before it has read all events.
func (s cacheSource) share(events watch.Interface) watch.Interface {
	w := &sharingWatch{from: events, result: make(chan watch.Event), stopped: make(chan struct{})}
	go func() {
		defer close(w.result)
		for event := range events.ResultChan() {
			if cluster, ok := unwrapped(event.Object).(*v1beta2.EtcdCluster); ok {
				s.clusters.share(cluster)
			}
			select {
			case w.result <- event:
			case <-w.stopped:
				return
			}
		}
	}()
	return w
}

// unwrapped returns the object that the storage has wrapped to note when it was decoded.
func unwrapped(obj runtime.Object) runtime.Object {
	if timed, ok := obj.(storage.WatchEventWithRecordTime); ok {
		return timed.Unwrap()
	}
	return obj
}

type sharingWatch struct {
	from    watch.Interface
	result  chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

// Stop implements watch.Interface.
func (w *sharingWatch) Stop() {
	w.once.Do(func() { close(w.stopped) })
	w.from.Stop()
}

// ResultChan implements watch.Interface.
func (w *sharingWatch) ResultChan() <-chan watch.Event { return w.result }
