// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller"
	"github.com/etcd-operator/etcd-operator/pkg/controller/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	etcdinformers "github.com/etcd-operator/etcd-operator/pkg/generated/informers/externalversions"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// suffixLength is the length of the random part of a member's name; cluster names
// are limited so that both fit a host name.
const suffixLength = 10

// caches are the informers of everything that the controller looks at.
type caches struct {
	kube informers.SharedInformerFactory
	etcd etcdinformers.SharedInformerFactory
	// jobs holds the Jobs of backups and restores, and their pods.
	jobs informers.SharedInformerFactory
}

func newCaches(o *Options, c clients) caches {
	// Only objects that carry the label of members are kept in memory.
	members := func(list *metav1.ListOptions) { list.LabelSelector = resources.LabelApp + "=" + resources.AppName }
	transfers := func(list *metav1.ListOptions) {
		list.LabelSelector = fmt.Sprintf("%s in (%s,%s)", resources.LabelApp, resources.BackupAppName, resources.RestoreAppName)
	}
	return caches{
		jobs: informers.NewSharedInformerFactoryWithOptions(c.kubernetes, 0,
			informers.WithNamespace(o.Namespace), informers.WithTweakListOptions(transfers), informers.WithTransform(dropManagedFields)),
		kube: informers.NewSharedInformerFactoryWithOptions(c.kubernetes, 0,
			informers.WithNamespace(o.Namespace), informers.WithTweakListOptions(members), informers.WithTransform(dropManagedFields)),
		etcd: etcdinformers.NewSharedInformerFactoryWithOptions(c.etcd, 0,
			etcdinformers.WithNamespace(o.Namespace), etcdinformers.WithTransform(dropManagedFields)),
	}
}

// dropManagedFields saves memory: nothing here reads them, and updates that leave
// them out do not change them.
func dropManagedFields(object any) (any, error) {
	if meta, ok := object.(metav1.Object); ok {
		meta.SetManagedFields(nil)
	}
	return object, nil
}

// shard is what a controller runs for the clusters of its scope.
type shard struct {
	o        *Options
	platform resources.Platform
	caches   caches
	pool     *etcd.Pool
	loops    []func(context.Context)
}

// newShard returns a shard whose caches are empty.
func newShard(o *Options, c clients, recorder record.EventRecorder) (*shard, error) {
	platform, err := o.platform(c.kubernetes.Discovery())
	if err != nil {
		return nil, err
	}
	caches := newCaches(o, c)
	pool := etcd.NewPool(etcd.PoolConfig{Clock: clock.RealClock{}})
	clusters, beside, err := newClusterLoop(o, c, caches, platform, pool, recorder)
	if err != nil {
		return nil, err
	}
	backups, clusterBackups, err := newBackupLoops(o, c, caches, platform, recorder)
	if err != nil {
		return nil, err
	}
	restores, err := newRestoreLoop(o, c, caches, platform, recorder)
	if err != nil {
		return nil, err
	}
	with := func(loop *controller.Loop, workers int) func(context.Context) {
		return func(ctx context.Context) { loop.Run(ctx, workers) }
	}
	loops := append(beside, with(clusters, o.Workers), with(backups, o.Workers), with(clusterBackups, 1), with(restores, o.Workers))
	return &shard{o: o, platform: platform, caches: caches, pool: pool, loops: loops}, tell(o, caches)
}

// fill starts the caches and returns when they hold what there is. They go on until ctx
// ends. The queues take in what happens meanwhile.
func (s *shard) fill(ctx context.Context) error {
	s.caches.kube.StartWithContext(ctx)
	s.caches.jobs.StartWithContext(ctx)
	s.caches.etcd.StartWithContext(ctx)
	return waitForCaches(ctx, s.caches)
}

// run reconciles until ctx ends.
func (s *shard) run(ctx context.Context) error {
	klog.FromContext(ctx).Info("Reconciling", "scope", s.o.scope().String(), "workers", s.o.Workers, "userOfNamespace", s.platform.UserOfNamespace)
	var group sync.WaitGroup
	for _, loop := range s.loops {
		group.Go(func() { loop(ctx) })
	}
	group.Wait()
	return nil
}

// close ends connections and waits for the caches, whose context must have ended.
func (s *shard) close() {
	s.pool.Close()
	s.caches.kube.Shutdown()
	s.caches.jobs.Shutdown()
	s.caches.etcd.Shutdown()
}

// tell adds what the statuses of the clusters say to the metrics.
func tell(o *Options, c caches) error {
	clusters := c.etcd.Etcd().V1beta2().EtcdClusters()
	told := func(object metav1.Object) bool { return controller.Leads() && o.Responsible(object) }
	collector := cluster.NewCollector(clusters.Lister(), told)
	if err := legacyregistry.CustomRegister(collector); err != nil {
		return fmt.Errorf("add the metrics of clusters: %w", err)
	}
	if err := legacyregistry.CustomRegister(controller.NewCertificateCollector(clusters.Lister(), told)); err != nil {
		return fmt.Errorf("add the metrics of certificates: %w", err)
	}
	left := cluster.NewLeftCollector(c.kube.Core().V1().PersistentVolumeClaims().Lister(), clusters.Lister(), controller.Leads)
	if err := legacyregistry.CustomRegister(left); err != nil {
		return fmt.Errorf("add the metric of PVCs without a cluster: %w", err)
	}
	return collector.Count(clusters.Informer())
}

var errCaches = errors.New("the caches were not filled")

func waitForCaches(ctx context.Context, c caches) error {
	for _, factory := range []informers.SharedInformerFactory{c.kube, c.jobs} {
		for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
			if !synced {
				return fmt.Errorf("%s: %w", kind, errCaches)
			}
		}
	}
	for kind, synced := range c.etcd.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("%s: %w", kind, errCaches)
		}
	}
	return nil
}

// newClusterLoop returns the loop and what must run beside it.
func newClusterLoop(
	o *Options, c clients, caches caches, platform resources.Platform, pool *etcd.Pool, recorder record.EventRecorder,
) (*controller.Loop, []func(context.Context), error) {
	clusters := caches.etcd.Etcd().V1beta2().EtcdClusters()
	pods := caches.kube.Core().V1().Pods()
	services := caches.kube.Core().V1().Services()
	claims := caches.kube.Core().V1().PersistentVolumeClaims()
	budgets := caches.kube.Policy().V1().PodDisruptionBudgets()
	slices := caches.kube.Discovery().V1().EndpointSlices()

	watched := []watch{
		{clusters.Informer(), &v1beta2.EtcdCluster{}, keyOfItself},
		{pods.Informer(), &corev1.Pod{}, keyOfMemberObject},
		{services.Informer(), &corev1.Service{}, keyOfMemberObject},
		{claims.Informer(), &corev1.PersistentVolumeClaim{}, keyOfMemberObject},
		{budgets.Informer(), &policyv1.PodDisruptionBudget{}, keyOfMemberObject},
		{slices.Informer(), nil, keyOfClientSlice},
	}
	for _, indexed := range []cache.SharedIndexInformer{pods.Informer(), claims.Informer(), slices.Informer()} {
		if err := indexed.AddIndexers(cluster.Indices()); err != nil {
			return nil, nil, fmt.Errorf("index a cache: %w", err)
		}
	}
	var reconciler *cluster.Reconciler
	loop := controller.NewLoop("EtcdCluster", clock.RealClock{}, func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
		result, err := reconciler.Reconcile(ctx, key)
		return result.RequeueAfter, err
	})
	members := cluster.EtcdPool{Pool: pool}
	waker := cluster.NewServingWaker(pool.WaitServing, pool.WaitEnd, loop.Enqueue)
	tasks := cluster.NewTasks(loop.Enqueue)
	reconciler, err := cluster.NewReconciler(cluster.Config{
		Cache: cluster.Listers{
			Clusters: clusters.Lister(), Services: services.Lister(), Budgets: budgets.Lister(),
			PodSet: pods.Informer().GetIndexer(), ClaimSet: claims.Informer().GetIndexer(), Slices: slices.Informer().GetIndexer(),
		},
		Objects: cluster.API{Kubernetes: c.kubernetes, Etcd: c.etcd},
		CertManager: &cluster.CertManagerAPI{
			Discovery: c.kubernetes.Discovery(), Dynamic: c.dynamic, Clock: clock.RealClock{},
		},
		Etcd:        members,
		Keep:        members.Keep,
		Gate:        gateOf(watched),
		Recorder:    recorder,
		Waker:       waker,
		Background:  tasks,
		Clock:       clock.RealClock{},
		Decide:      planner.Decide,
		Suffix:      func() string { return utilrand.String(suffixLength) },
		Responsible: func(c *v1beta2.EtcdCluster) bool { return o.Responsible(c) },
		AgentImage:  o.AgentImage,
		Platform:    platform,
	})
	if err != nil {
		return nil, nil, err
	}
	return loop, []func(context.Context){waker.Run, tasks.Run}, feed(loop, watched)
}

func keyOfItself(object metav1.Object) (types.NamespacedName, bool) {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, true
}

// keyOfMemberObject goes by the label, not by the owner: objects of the same name
// that belong to somebody else are what a cluster may wait for.
func keyOfMemberObject(object metav1.Object) (types.NamespacedName, bool) {
	labels := object.GetLabels()
	name := cmp.Or(labels[resources.LabelCluster], labels[resources.LabelRecovery], labels[resources.LabelRetired])
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: name}, name != ""
}

// keyOfClientSlice goes by the labels that an endpoint slice has from its service. Only
// where clients are led to matters: the slices of the members' own service change with
// their pods, which are watched already.
func keyOfClientSlice(object metav1.Object) (types.NamespacedName, bool) {
	key, member := keyOfMemberObject(object)
	return key, member && object.GetLabels()[discoveryv1.LabelServiceName] != key.Name
}
