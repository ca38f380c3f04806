// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Object is what a View can hold.
type Object interface {
	runtime.Object
	metav1.Object
}

// View follows a set of objects by a watch, so that waiting for something means to
// wait for its event. It outlives a restart of the API server.
type View[T Object] struct {
	store  cache.Store
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	changed chan struct{}
}

// follow starts a view. It returns when the view holds all objects that exist.
func follow[T Object](ctx context.Context, lw *cache.ListWatch, example T) (*View[T], error) {
	ctx, cancel := context.WithCancel(ctx)
	v := &View[T]{cancel: cancel, done: make(chan struct{}), changed: make(chan struct{})}
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: lw,
		ObjectType:    example,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { v.notify() },
			UpdateFunc: func(any, any) { v.notify() },
			DeleteFunc: func(any) { v.notify() },
		},
	})
	v.store = store
	go func() {
		defer close(v.done)
		informer.RunWithContext(ctx)
	}()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		v.Close()
		return nil, fmt.Errorf("follow %T: %w", example, context.Cause(ctx))
	}
	return v, nil
}

// Close ends the view.
func (v *View[T]) Close() {
	v.cancel()
	<-v.done
}

func (v *View[T]) notify() {
	v.mu.Lock()
	defer v.mu.Unlock()
	close(v.changed)
	v.changed = make(chan struct{})
}

// Changed returns a channel that is closed at the next event.
func (v *View[T]) Changed() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed
}

// List returns the objects, oldest first. They are shared: do not change them.
func (v *View[T]) List() []T {
	items := v.store.List()
	list := make([]T, 0, len(items))
	for _, item := range items {
		if object, ok := item.(T); ok {
			list = append(list, object)
		}
	}
	slices.SortFunc(list, func(a, b T) int {
		ta, tb := a.GetCreationTimestamp(), b.GetCreationTimestamp()
		if order := ta.Compare(tb.Time); order != 0 {
			return order
		}
		return cmp.Compare(a.GetName(), b.GetName())
	})
	return list
}

// Await returns as soon as done is true of the objects.
func (v *View[T]) Await(ctx context.Context, done func([]T) bool) error {
	for {
		changed := v.Changed()
		if done(v.List()) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// source is a typed client of one kind in one namespace.
type source[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// selected lists and watches the objects of a kind with these labels and fields.
func selected[L runtime.Object](client source[L], labels, fields string) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector, o.FieldSelector = labels, fields
			return client.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector, o.FieldSelector = labels, fields
			return client.Watch(ctx, o)
		},
	}
}

func named(name string) string { return "metadata.name=" + name }

// Pods follows the pods of a namespace that a label selector selects.
func (e *Environment) Pods(ctx context.Context, namespace, labels string) (*View[*corev1.Pod], error) {
	return follow(ctx, selected(e.Kube.CoreV1().Pods(namespace), labels, ""), &corev1.Pod{})
}

// MemberPods follows the pods of a cluster.
func (e *Environment) MemberPods(ctx context.Context, namespace, cluster string) (*View[*corev1.Pod], error) {
	return e.Pods(ctx, namespace, "app=etcd,etcd_cluster="+cluster)
}

// Clusters follows all EtcdClusters of a namespace.
func (e *Environment) Clusters(ctx context.Context, namespace string) (*View[*v1beta2.EtcdCluster], error) {
	return follow(ctx, selected(e.Etcd.EtcdV1beta2().EtcdClusters(namespace), "", ""), &v1beta2.EtcdCluster{})
}

// Cluster follows one EtcdCluster.
func (e *Environment) Cluster(ctx context.Context, namespace, name string) (*View[*v1beta2.EtcdCluster], error) {
	return follow(ctx, selected(e.Etcd.EtcdV1beta2().EtcdClusters(namespace), "", named(name)), &v1beta2.EtcdCluster{})
}

// Backup follows one EtcdBackup.
func (e *Environment) Backup(ctx context.Context, namespace, name string) (*View[*v1beta2.EtcdBackup], error) {
	return follow(ctx, selected(e.Etcd.EtcdV1beta2().EtcdBackups(namespace), "", named(name)), &v1beta2.EtcdBackup{})
}

// Restore follows one EtcdRestore.
func (e *Environment) Restore(ctx context.Context, namespace, name string) (*View[*v1beta2.EtcdRestore], error) {
	return follow(ctx, selected(e.Etcd.EtcdV1beta2().EtcdRestores(namespace), "", named(name)), &v1beta2.EtcdRestore{})
}

// Backups follows all EtcdBackups of a namespace.
func (e *Environment) Backups(ctx context.Context, namespace string) (*View[*v1beta2.EtcdBackup], error) {
	return follow(ctx, selected(e.Etcd.EtcdV1beta2().EtcdBackups(namespace), "", ""), &v1beta2.EtcdBackup{})
}

// Pod follows one pod.
func (e *Environment) Pod(ctx context.Context, namespace, name string) (*View[*corev1.Pod], error) {
	return follow(ctx, selected(e.Kube.CoreV1().Pods(namespace), "", named(name)), &corev1.Pod{})
}

// PVCs follows the PVCs of a cluster.
func (e *Environment) PVCs(ctx context.Context, namespace, cluster string) (*View[*corev1.PersistentVolumeClaim], error) {
	return follow(ctx, selected(e.Kube.CoreV1().PersistentVolumeClaims(namespace), "app=etcd,etcd_cluster="+cluster, ""), &corev1.PersistentVolumeClaim{})
}

// Service follows one service.
func (e *Environment) Service(ctx context.Context, namespace, name string) (*View[*corev1.Service], error) {
	return follow(ctx, selected(e.Kube.CoreV1().Services(namespace), "", named(name)), &corev1.Service{})
}

// ConfigMap follows one ConfigMap.
func (e *Environment) ConfigMap(ctx context.Context, namespace, name string) (*View[*corev1.ConfigMap], error) {
	return follow(ctx, selected(e.Kube.CoreV1().ConfigMaps(namespace), "", named(name)), &corev1.ConfigMap{})
}

// Secret follows one secret.
func (e *Environment) Secret(ctx context.Context, namespace, name string) (*View[*corev1.Secret], error) {
	return follow(ctx, selected(e.Kube.CoreV1().Secrets(namespace), "", named(name)), &corev1.Secret{})
}

// Budget follows one pod disruption budget.
func (e *Environment) Budget(ctx context.Context, namespace, name string) (*View[*policyv1.PodDisruptionBudget], error) {
	return follow(ctx, selected(e.Kube.PolicyV1().PodDisruptionBudgets(namespace), "", named(name)), &policyv1.PodDisruptionBudget{})
}

// Node follows one node.
func (e *Environment) Node(ctx context.Context, name string) (*View[*corev1.Node], error) {
	return follow(ctx, selected(e.Kube.CoreV1().Nodes(), "", named(name)), &corev1.Node{})
}

// IsPodReady is true of a pod that serves and is not going away.
func IsPodReady(p *corev1.Pod) bool {
	if p.DeletionTimestamp != nil {
		return false
	}
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// AllReady is true of exactly n pods that are all ready.
func AllReady(n int) func([]*corev1.Pod) bool {
	return func(pods []*corev1.Pod) bool {
		for _, p := range pods {
			if !IsPodReady(p) {
				return false
			}
		}
		return len(pods) == n
	}
}
