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
	componentmetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/background"
	"github.com/etcd-operator/etcd-operator/pkg/controller/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/controller/etcdadapter"
	"github.com/etcd-operator/etcd-operator/pkg/controller/kubeadapter"
	"github.com/etcd-operator/etcd-operator/pkg/controller/loop"
	"github.com/etcd-operator/etcd-operator/pkg/controller/metrics"
	"github.com/etcd-operator/etcd-operator/pkg/controller/orphanedpvc"
	"github.com/etcd-operator/etcd-operator/pkg/controller/waker"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	etcdinformers "github.com/etcd-operator/etcd-operator/pkg/generated/informers/externalversions"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/pkg/share"
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
	// cordons holds the cordoned nodes.
	cordons *kubeadapter.Cordons
}

func newCaches(o *Options, c clients) (caches, error) {
	// Only objects that carry the label of members are kept in memory.
	members := func(list *metav1.ListOptions) { list.LabelSelector = resources.LabelApp + "=" + resources.AppName }
	transfers := func(list *metav1.ListOptions) {
		list.LabelSelector = fmt.Sprintf("%s in (%s,%s)", resources.LabelApp, resources.BackupAppName, resources.RestoreAppName)
	}
	cordons, err := kubeadapter.NewCordons(c.metadata)
	if err != nil {
		return caches{}, fmt.Errorf("prepare to watch cordoned nodes: %w", err)
	}
	return caches{
		cordons: cordons,
		jobs: informers.NewSharedInformerFactoryWithOptions(c.kubernetes, 0,
			informers.WithNamespace(o.Namespace), informers.WithTweakListOptions(transfers), informers.WithTransform(dropManagedFields)),
		kube: informers.NewSharedInformerFactoryWithOptions(c.kubernetes, 0,
			informers.WithNamespace(o.Namespace), informers.WithTweakListOptions(members), informers.WithTransform(keepOwn)),
		etcd: etcdinformers.NewSharedInformerFactoryWithOptions(c.etcd, 0,
			etcdinformers.WithNamespace(o.Namespace), etcdinformers.WithTransform(dropManagedFields)),
	}, nil
}

// forJobs returns the cache of a reconciler whose objects have Jobs with these labels.
func (c caches) forJobs(labels kubeadapter.LabelsOf) kubeadapter.JobCache {
	etcd := c.etcd.Etcd().V1beta2()
	return kubeadapter.JobCache{
		Labels:       labels,
		JobList:      c.jobs.Batch().V1().Jobs().Lister(),
		PodsOfJobs:   c.jobs.Core().V1().Pods().Lister(),
		EtcdClusters: etcd.EtcdClusters().Lister(),
		EtcdBackups:  etcd.EtcdBackups().Lister(),
		EtcdRestores: etcd.EtcdRestores().Lister(),
		MemberPods:   c.kube.Core().V1().Pods().Lister(),
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

// keepOwn drops what is not the controller's from the objects of members: users may label what they like.
func keepOwn(object any) (any, error) {
	if cm, is := object.(*corev1.ConfigMap); is {
		return resources.CachedRecord(cm), nil
	}
	return dropManagedFields(object)
}

// shard is what a controller runs for the clusters of its scope.
type shard struct {
	o        *Options
	platform resources.Platform
	caches   caches
	pool     *etcd.Pool
	loops    []func(context.Context)
	// forget removes the metrics of the caches.
	forget func()
	// watches are what runs until the context of fill ends.
	watches sync.WaitGroup
}

// newShard returns a shard whose caches are empty.
func newShard(o *Options, c clients, recorder record.EventRecorder) (*shard, error) {
	platform, err := o.platform(c.kubernetes.Discovery())
	if err != nil {
		return nil, err
	}
	caches, err := newCaches(o, c)
	if err != nil {
		return nil, err
	}
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
	with := func(l *loop.Loop, workers int) func(context.Context) {
		return func(ctx context.Context) { l.Run(ctx, workers) }
	}
	loops := append(beside, with(clusters, o.Workers), with(backups, o.Workers), with(clusterBackups, 1), with(restores, o.Workers))
	forget, err := tell(o, caches)
	if err != nil {
		return nil, err
	}
	return &shard{o: o, platform: platform, caches: caches, pool: pool, loops: loops, forget: forget}, nil
}

// fill starts the caches and returns when they hold what there is. They go on until ctx
// ends. The queues take in what happens meanwhile.
func (s *shard) fill(ctx context.Context) error {
	s.caches.kube.StartWithContext(ctx)
	s.caches.jobs.StartWithContext(ctx)
	s.caches.etcd.StartWithContext(ctx)
	s.watches.Go(func() { s.caches.cordons.Run(ctx) })
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
	s.forget()
	s.pool.Close()
	s.caches.kube.Shutdown()
	s.caches.jobs.Shutdown()
	s.caches.etcd.Shutdown()
	s.watches.Wait()
}

// tell adds what the statuses of the clusters say to the metrics, until forget is called.
func tell(o *Options, c caches) (forget func(), err error) {
	clusters := c.etcd.Etcd().V1beta2().EtcdClusters()
	told := func(object metav1.Object) bool { return metrics.IsLeader() && o.IsResponsible(object) }
	counted := metrics.NewClusterCollector(clusters.Lister(), told)
	if err := counted.Count(clusters.Informer()); err != nil {
		return nil, err
	}
	collectors := []componentmetrics.StableCollector{
		counted,
		metrics.NewCertificateCollector(clusters.Lister(), told),
		orphanedpvc.NewCollector(c.kube.Core().V1().PersistentVolumeClaims().Lister(), clusters.Lister(), metrics.IsLeader),
	}
	forget = func() {
		for _, collector := range collectors {
			legacyregistry.Registerer().Unregister(collector)
		}
	}
	for _, collector := range collectors {
		if err := legacyregistry.CustomRegister(collector); err != nil {
			forget()
			return nil, fmt.Errorf("add the metrics of clusters, certificates and PVCs: %w", err)
		}
	}
	return forget, nil
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
	if !c.cordons.WaitForSync(ctx) {
		return fmt.Errorf("cordoned nodes: %w", errCaches)
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
) (*loop.Loop, []func(context.Context), error) {
	clusters := caches.etcd.Etcd().V1beta2().EtcdClusters()
	pods := caches.kube.Core().V1().Pods()
	services := caches.kube.Core().V1().Services()
	pvcs := caches.kube.Core().V1().PersistentVolumeClaims()
	records := caches.kube.Core().V1().ConfigMaps()
	budgets := caches.kube.Policy().V1().PodDisruptionBudgets()
	slices := caches.kube.Discovery().V1().EndpointSlices()

	watched := []watch{
		{clusters.Informer(), &v1beta2.EtcdCluster{}, keyOfItself},
		{pods.Informer(), &corev1.Pod{}, keyOfMemberObject},
		{services.Informer(), &corev1.Service{}, keyOfMemberObject},
		{records.Informer(), &corev1.ConfigMap{}, keyOfRecord},
		{pvcs.Informer(), &corev1.PersistentVolumeClaim{}, keyOfMemberObject},
		{budgets.Informer(), &policyv1.PodDisruptionBudget{}, keyOfMemberObject},
		{slices.Informer(), nil, keyOfClientSlice},
	}
	for _, indexed := range []cache.SharedIndexInformer{pods.Informer(), pvcs.Informer(), slices.Informer()} {
		if err := indexed.AddIndexers(kubeadapter.Indices()); err != nil {
			return nil, nil, fmt.Errorf("index a cache: %w", err)
		}
	}
	if err := pods.Informer().AddIndexers(kubeadapter.PodIndices()); err != nil {
		return nil, nil, fmt.Errorf("index pods by their nodes: %w", err)
	}
	var reconciler *cluster.Reconciler
	queue := loop.New("EtcdCluster", clock.RealClock{}, func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
		return reconciler.Reconcile(ctx, key)
	})
	members := etcdadapter.Members{Pool: pool}
	launchers, err := etcdadapter.NewLaunchers(o.places)
	if err != nil {
		return nil, nil, err
	}
	callbacks := waker.New(o.places, pool.WaitServing, pool.WaitEnd, queue.Enqueue)
	tasks := background.New(o.places, queue.Enqueue)
	reconciler, err = cluster.NewReconciler(cluster.Config{
		Cache: kubeadapter.ClusterCache{
			Clusters: clusters.Lister(), Restores: caches.etcd.Etcd().V1beta2().EtcdRestores().Lister(), Services: services.Lister(), Records: records.Lister(), Budgets: budgets.Lister(),
			PodSet: pods.Informer().GetIndexer(), PVCSet: pvcs.Informer().GetIndexer(), Slices: slices.Informer().GetIndexer(),
			Cordons: caches.cordons,
		},
		Objects: c.adapter(),
		CertManager: &kubeadapter.CertManager{
			Discovery: c.kubernetes.Discovery(), Dynamic: c.dynamic, Clock: clock.RealClock{},
		},
		Etcd:        members,
		Keep:        members.Keep,
		Gate:        gateOf(watched),
		Recorder:    recorder,
		Waker:       callbacks,
		Launchers:   launchers,
		TakeOvers:   share.NewLimiter(o.places(cluster.MaxTakeOvers)),
		Background:  tasks,
		Clock:       c.clock,
		Decide:      planner.Decide,
		Suffix:      func() string { return utilrand.String(suffixLength) },
		Responsible: func(c *v1beta2.EtcdCluster) bool { return o.IsResponsible(c) },
		AgentImage:  o.AgentImage,
		Platform:    platform,
	})
	if err != nil {
		return nil, nil, err
	}
	if err := feedCordons(queue, caches.cordons, pods.Informer().GetIndexer()); err != nil {
		return nil, nil, err
	}
	return queue, []func(context.Context){callbacks.Run, tasks.Run}, feed(queue, watched)
}

func keyOfItself(object metav1.Object) (types.NamespacedName, bool) {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, true
}

// keyOfMemberObject uses the label, not the owner: a cluster may wait for objects of the
// same name that it does not own.
func keyOfMemberObject(object metav1.Object) (types.NamespacedName, bool) {
	labels := object.GetLabels()
	name := cmp.Or(labels[resources.LabelCluster], labels[resources.LabelRecovery], labels[resources.LabelFenced])
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: name}, name != ""
}

// keyOfRecord goes by the name: a label does not make a ConfigMap a record.
func keyOfRecord(object metav1.Object) (types.NamespacedName, bool) {
	name, is := resources.ClusterOfRecord(object.GetName())
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: name}, is
}

// keyOfClientSlice goes by the labels that an endpoint slice has from its service. Only
// where clients are led to matters: the slices of the members' own service change with
// their pods, which are watched already.
func keyOfClientSlice(object metav1.Object) (types.NamespacedName, bool) {
	key, member := keyOfMemberObject(object)
	return key, member && object.GetLabels()[discoveryv1.LabelServiceName] != key.Name
}
