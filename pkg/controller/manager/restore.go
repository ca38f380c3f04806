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
	"github.com/etcd-operator/etcd-operator/pkg/controller/restore"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// newRestoreLoop returns the loop of EtcdRestores.
func newRestoreLoop(o *Options, c clients, caches caches, recorder record.EventRecorder) (*controller.Loop, error) {
	etcdRestores := caches.etcd.Etcd().V1beta2().EtcdRestores()
	etcdBackups := caches.etcd.Etcd().V1beta2().EtcdBackups()
	etcdClusters := caches.etcd.Etcd().V1beta2().EtcdClusters()
	jobs := caches.jobs.Batch().V1().Jobs()
	jobPods := caches.jobs.Core().V1().Pods()

	reconciler, err := restore.NewReconciler(restore.Config{
		Cache: restore.Listers{
			EtcdRestores: etcdRestores.Lister(), EtcdBackups: etcdBackups.Lister(), EtcdClusters: etcdClusters.Lister(),
			MemberPods: caches.kube.Core().V1().Pods().Lister(), JobList: jobs.Lister(), PodsOfJobs: jobPods.Lister(),
		},
		Objects: restore.API{Kubernetes: c.kubernetes, Etcd: c.etcd},
		Gate: controller.NewGate(map[string]func() string{
			controller.KindOf(&v1beta2.EtcdRestore{}): seenBy(etcdRestores.Informer()),
			controller.KindOf(&v1beta2.EtcdCluster{}): seenBy(etcdClusters.Informer()),
			controller.KindOf(&v1beta2.EtcdBackup{}):  seenBy(etcdBackups.Informer()),
			controller.KindOf(&batchv1.Job{}):         seenBy(jobs.Informer()),
		}),
		Recorder:    recorder,
		Progress:    backup.NewAgentProgress(),
		Clock:       clock.RealClock{},
		AgentImage:  o.AgentImage,
		Responsible: o.Responsible,
	})
	if err != nil {
		return nil, err
	}
	loop := controller.NewLoop("EtcdRestore", clock.RealClock{}, func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
		return reconciler.Reconcile(ctx, key)
	})
	for _, feed := range []struct {
		informer cache.SharedIndexInformer
		keyOf    func(metav1.Object) (types.NamespacedName, bool)
	}{
		{etcdRestores.Informer(), keyOfItself},
		{jobs.Informer(), keyOfRestoreJob},
		{jobPods.Informer(), keyOfRestoreJob},
		{etcdClusters.Informer(), keyOfRestored},
		{etcdBackups.Informer(), keyOfSafetyCopy},
	} {
		if err := loop.Feed(feed.informer, feed.keyOf); err != nil {
			return nil, err
		}
	}
	return loop, nil
}

// keyOfRestoreJob is for a Job of a restore and for its pods.
func keyOfRestoreJob(object metav1.Object) (types.NamespacedName, bool) {
	name := object.GetAnnotations()[resources.AnnotationRestoreJob]
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: name}, name != ""
}

// keyOfSafetyCopy is the restore before which an EtcdBackup copies what it replaces.
func keyOfSafetyCopy(object metav1.Object) (types.NamespacedName, bool) {
	name := object.GetAnnotations()[resources.AnnotationSafetyCopy]
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: name}, name != ""
}

// keyOfRestored is the restore that a cluster goes on from, or that has made it.
func keyOfRestored(object metav1.Object) (types.NamespacedName, bool) {
	c, ok := object.(*v1beta2.EtcdCluster)
	if !ok {
		return types.NamespacedName{}, false
	}
	name := c.Annotations[v1beta2.AnnotationRestore]
	if r := c.Status.Recovery; r != nil && r.Source.Restore != "" {
		name = r.Source.Restore
	}
	return types.NamespacedName{Namespace: c.Namespace, Name: name}, name != ""
}
