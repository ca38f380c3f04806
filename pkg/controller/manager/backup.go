// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/backup"
	"github.com/etcd-operator/etcd-operator/pkg/controller/job"
	"github.com/etcd-operator/etcd-operator/pkg/controller/loop"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// newBackupLoops returns the loop of EtcdBackups, and that of what EtcdClusters say of
// their backups.
func newBackupLoops(o *Options, c clients, caches caches, platform resources.Platform, recorder record.EventRecorder) (backups, clusters *loop.Loop, err error) {
	etcdBackups := caches.etcd.Etcd().V1beta2().EtcdBackups()
	etcdClusters := caches.etcd.Etcd().V1beta2().EtcdClusters()
	jobs := caches.jobs.Batch().V1().Jobs()
	jobPods := caches.jobs.Core().V1().Pods()

	watched := []watch{
		{etcdBackups.Informer(), &v1beta2.EtcdBackup{}, keyOfItself},
		{jobs.Informer(), &batchv1.Job{}, keyOfBackupJob},
		{jobPods.Informer(), nil, keyOfBackupJob},
		{caches.etcd.Etcd().V1beta2().EtcdRestores().Informer(), nil, keyOfReadBackup},
	}
	var reconciler *backup.Reconciler
	backups = loop.New("EtcdBackup", clock.RealClock{}, func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
		return reconciler.Reconcile(ctx, key)
	}).Punctual()
	reconciler, err = backup.NewReconciler(backup.Config{
		Cache:       caches.forJobs(resources.BackupLabels),
		Objects:     c.forJobs(resources.BackupLabels),
		Gate:        gateOf(watched),
		Recorder:    recorder,
		Progress:    job.NewAgentProgress(),
		Clock:       c.clock,
		AgentImage:  o.AgentImage,
		Platform:    platform,
		Places:      o.places(o.MaxBackups),
		Responsible: o.IsResponsible,
		Wake:        backups.Enqueue,
	})
	if err != nil {
		return nil, nil, err
	}
	watchedByClusters := []watch{
		{etcdClusters.Informer(), &v1beta2.EtcdCluster{}, keyOfItself},
		{etcdBackups.Informer(), &v1beta2.EtcdBackup{}, keyOfBackedUp},
	}
	clusters = loop.New("EtcdClusterBackups", clock.RealClock{}, backup.NewClusters(reconciler, gateOf(watchedByClusters)).Reconcile)
	return backups, clusters, errors.Join(feed(backups, watched), feed(clusters, watchedByClusters))
}

// keyOfBackupJob is for a Job of a backup and for its pods.
func keyOfBackupJob(object metav1.Object) (types.NamespacedName, bool) {
	name := object.GetAnnotations()[resources.AnnotationBackup]
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: name}, name != ""
}

// keyOfReadBackup is the EtcdBackup that an EtcdRestore names: its Job must not delete what is read. An EtcdRestore that
// names a place in a store wakes none: an EtcdBackup whose Job runs looks by itself.
func keyOfReadBackup(object metav1.Object) (types.NamespacedName, bool) {
	r, ok := object.(*v1beta2.EtcdRestore)
	if !ok || r.Spec.Backup == nil {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Spec.Backup.Name}, true
}

// keyOfBackedUp is the cluster that a backup is of.
func keyOfBackedUp(object metav1.Object) (types.NamespacedName, bool) {
	b, ok := object.(*v1beta2.EtcdBackup)
	if !ok {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: b.Namespace, Name: resources.SourceOf(b)}, true
}
