// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package sharing

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// pageSize is how many objects are decoded before they share parts. A decoded object takes three
	// times the memory.
	pageSize = 1000
	// cachePage is the size of the pages in which the watch cache reads all objects: when it starts,
	// and every few minutes to compare itself with etcd.
	cachePage = 10_000
)

// sharingStorage is etcd as the watch cache reads it: its objects share equal parts. It stores what
// requests write as it is.
type sharingStorage struct {
	storage.Interface
	clusters *Clusters
}

// Get implements storage.Interface.
func (s sharingStorage) Get(ctx context.Context, key string, options storage.GetOptions, out runtime.Object) error {
	into, ok := out.(*Cluster)
	if !ok {
		return s.Interface.Get(ctx, key, options, out)
	}
	cluster := &v1beta2.EtcdCluster{}
	err := s.Interface.Get(ctx, key, options, cluster)
	*into = Cluster{}
	if err == nil && cluster.Name != "" {
		*into = s.clusters.newCluster(cluster)
	}
	return err
}

// GetList implements storage.Interface. It reads a ClusterList in pages, whose objects it shares one
// page after the other. A page of the watch cache has fewer objects than desired; its
// token leads to the next ones.
func (s sharingStorage) GetList(ctx context.Context, key string, options storage.ListOptions, out runtime.Object) error {
	into, ok := out.(*ClusterList)
	if !ok {
		return s.Interface.GetList(ctx, key, options, out)
	}
	most := int(options.Predicate.Limit)
	// A page of a request is soon forgotten, and sharing costs time.
	wrap := s.clusters.newCluster
	if most > 0 && most < cachePage {
		wrap = unshared
	}
	switch {
	case most >= cachePage:
		most = pageSize
	case most == 0 && options.ResourceVersion != "" && options.ResourceVersionMatch == "":
		// A version without a match means at least this version. With a limit it would mean exactly
		// this version.
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	into.Items = []Cluster{}
	for {
		if options.Recursive {
			options.Predicate.Limit = pageSize
			if most > 0 {
				options.Predicate.Limit = int64(min(pageSize, most-len(into.Items)))
			}
		}
		page := &v1beta2.EtcdClusterList{}
		if err := s.Interface.GetList(ctx, key, options, page); err != nil {
			return err
		}
		for i := range page.Items {
			into.Items = append(into.Items, wrap(&page.Items[i]))
		}
		into.ListMeta = page.ListMeta
		if page.Continue == "" || len(into.Items) == most {
			return nil
		}
		options.Predicate.Continue = page.Continue
		options.ResourceVersion, options.ResourceVersionMatch = "", ""
	}
}

// Watch implements storage.Interface.
func (s sharingStorage) Watch(ctx context.Context, key string, options storage.ListOptions) (watch.Interface, error) {
	events, err := s.Interface.Watch(ctx, key, options)
	if err != nil {
		return nil, err
	}
	return s.share(events), nil
}

// share returns a watch with the same events. Package watch has a filter that does the same, but its
// goroutine does not end if the reader stops before it has read all events.
func (s sharingStorage) share(events watch.Interface) watch.Interface {
	w := &sharingWatch{from: events, result: make(chan watch.Event), stopped: make(chan struct{})}
	go func() {
		defer close(w.result)
		for event := range events.ResultChan() {
			if cluster, ok := event.Object.(*v1beta2.EtcdCluster); ok {
				shared := s.clusters.newCluster(cluster)
				event.Object = &shared
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
