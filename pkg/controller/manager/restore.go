// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/job"
	"github.com/etcd-operator/etcd-operator/pkg/controller/loop"
	"github.com/etcd-operator/etcd-operator/pkg/controller/restore"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// newRestoreLoop returns the loop of EtcdRestores.
func newRestoreLoop(o *Options, c clients, caches caches, platform resources.Platform, recorder record.EventRecorder) (*loop.Loop, error) {
	etcdRestores := caches.etcd.Etcd().V1beta2().EtcdRestores()
	etcdBackups := caches.etcd.Etcd().V1beta2().EtcdBackups()
	etcdClusters := caches.etcd.Etcd().V1beta2().EtcdClusters()
	jobs := caches.jobs.Batch().V1().Jobs()
	jobPods := caches.jobs.Core().V1().Pods()

	watched := []watch{
		{etcdRestores.Informer(), &v1beta2.EtcdRestore{}, keyOfItself},
		{jobs.Informer(), &batchv1.Job{}, keyOfRestoreJob},
		{jobPods.Informer(), nil, keyOfRestoreJob},
		{etcdClusters.Informer(), &v1beta2.EtcdCluster{}, keyOfRestored},
		{etcdBackups.Informer(), &v1beta2.EtcdBackup{}, keyOfPreRestoreBackup},
	}
	reconciler, err := restore.NewReconciler(restore.Config{
		Cache:       caches.forJobs(resources.RestoreLabels),
		Objects:     c.forJobs(resources.RestoreLabels),
		Gate:        gateOf(watched),
		Recorder:    recorder,
		Progress:    job.NewAgentProgress(),
		Clock:       c.clock,
		AgentImage:  o.AgentImage,
		Platform:    platform,
		Responsible: o.IsResponsible,
	})
	if err != nil {
		return nil, err
	}
	restores := loop.New("EtcdRestore", clock.RealClock{}, reconciler.Reconcile)
	return restores, feed(restores, watched)
}

// keyOfRestoreJob is for a Job of a restore and for its pods.
func keyOfRestoreJob(object metav1.Object) (types.NamespacedName, bool) {
	name := object.GetAnnotations()[resources.AnnotationRestoreJob]
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: name}, name != ""
}

// keyOfPreRestoreBackup returns the restore that an EtcdBackup was made for.
func keyOfPreRestoreBackup(object metav1.Object) (types.NamespacedName, bool) {
	name := object.GetAnnotations()[resources.AnnotationPreRestoreBackup]
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
