// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller"
	"github.com/etcd-operator/etcd-operator/pkg/controller/backup"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// newBackupLoops returns the loop of EtcdBackups, and that of what EtcdClusters say of
// their backups.
func newBackupLoops(o *Options, c clients, caches caches, recorder record.EventRecorder) (backups, clusters *controller.Loop, err error) {
	etcdBackups := caches.etcd.Etcd().V1beta2().EtcdBackups()
	etcdClusters := caches.etcd.Etcd().V1beta2().EtcdClusters()
	jobs := caches.jobs.Batch().V1().Jobs()
	jobPods := caches.jobs.Core().V1().Pods()

	var reconciler *backup.Reconciler
	backups = controller.NewLoop("EtcdBackup", clock.RealClock{}, func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
		return reconciler.Reconcile(ctx, key)
	}).Punctual()
	reconciler, err = backup.NewReconciler(backup.Config{
		Cache: backup.Listers{
			EtcdBackups: etcdBackups.Lister(), EtcdClusters: etcdClusters.Lister(), MemberPods: caches.kube.Core().V1().Pods().Lister(),
			JobList: jobs.Lister(), PodsOfJobs: jobPods.Lister(),
		},
		Objects: backup.API{Kubernetes: c.kubernetes, Etcd: c.etcd},
		Gate: controller.NewGate(map[string]func() string{
			controller.KindOf(&v1beta2.EtcdBackup{}): seenBy(etcdBackups.Informer()),
			controller.KindOf(&batchv1.Job{}):        seenBy(jobs.Informer()),
		}),
		Recorder:    recorder,
		Progress:    backup.NewAgentProgress(),
		Clock:       clock.RealClock{},
		AgentImage:  o.AgentImage,
		MaxRunning:  o.MaxBackups,
		Responsible: o.Responsible,
		Wake:        backups.Enqueue,
	})
	if err != nil {
		return nil, nil, err
	}
	ofCluster := backup.NewClusters(reconciler, controller.NewGate(map[string]func() string{
		controller.KindOf(&v1beta2.EtcdBackup{}):  seenBy(etcdBackups.Informer()),
		controller.KindOf(&v1beta2.EtcdCluster{}): seenBy(etcdClusters.Informer()),
	}))
	clusters = controller.NewLoop("EtcdClusterBackups", clock.RealClock{}, ofCluster.Reconcile)

	for _, feed := range []struct {
		loop     *controller.Loop
		informer cache.SharedIndexInformer
		keyOf    func(metav1.Object) (types.NamespacedName, bool)
	}{
		{backups, etcdBackups.Informer(), keyOfItself},
		{backups, jobs.Informer(), keyOfBackupJob},
		{backups, jobPods.Informer(), keyOfBackupJob},
		{clusters, etcdClusters.Informer(), keyOfItself},
		{clusters, etcdBackups.Informer(), keyOfBackedUp},
	} {
		if err := feed.loop.Feed(feed.informer, feed.keyOf); err != nil {
			return nil, nil, err
		}
	}
	return backups, clusters, nil
}

// keyOfBackupJob is for a Job of a backup and for its pods.
func keyOfBackupJob(object metav1.Object) (types.NamespacedName, bool) {
	name := object.GetAnnotations()[resources.AnnotationBackup]
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: name}, name != ""
}

// keyOfBackedUp is the cluster that a backup is of.
func keyOfBackedUp(object metav1.Object) (types.NamespacedName, bool) {
	b, ok := object.(*v1beta2.EtcdBackup)
	if !ok {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: b.Namespace, Name: backup.SourceOf(b)}, true
}
