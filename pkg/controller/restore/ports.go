// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/job"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
)

// Cache reads what the informers hold; it may lag behind. Objects that it returns are
// shared and must not be changed. A missing object is a NotFound error of
// k8s.io/apimachinery/pkg/api/errors.
type Cache interface {
	Restore(namespace, name string) (*v1beta2.EtcdRestore, error)
	// Restores lists the EtcdRestores of a namespace.
	Restores(namespace string) ([]*v1beta2.EtcdRestore, error)
	Backup(namespace, name string) (*v1beta2.EtcdBackup, error)
	Cluster(namespace, name string) (*v1beta2.EtcdCluster, error)
	// Member returns the pod of a member, or of the new first one of a recovery.
	Member(namespace, name string) (*corev1.Pod, error)
	// Jobs lists the Jobs of one EtcdRestore, and JobPods their pods.
	Jobs(namespace string, restore types.UID) ([]*batchv1.Job, error)
	JobPods(namespace string, restore types.UID) ([]*corev1.Pod, error)
	// BackupJobs lists the Jobs of the EtcdBackups of a namespace, and BackupJobPods their pods.
	BackupJobs(namespace string) ([]*batchv1.Job, error)
	BackupJobPods(namespace string) ([]*corev1.Pod, error)
}

// Objects reads and writes the live API. A read here is never older than the moment at
// which it is made.
type Objects interface {
	job.Objects

	GetRestore(ctx context.Context, namespace, name string) (*v1beta2.EtcdRestore, error)
	UpdateRestore(ctx context.Context, restore *v1beta2.EtcdRestore) (*v1beta2.EtcdRestore, error)
	UpdateRestoreStatus(ctx context.Context, restore *v1beta2.EtcdRestore) (*v1beta2.EtcdRestore, error)

	GetCluster(ctx context.Context, namespace, name string) (*v1beta2.EtcdCluster, error)
	CreateCluster(ctx context.Context, cluster *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error)
	UpdateClusterStatus(ctx context.Context, cluster *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error)
	DeleteCluster(ctx context.Context, namespace, name string, only metav1.Preconditions) error

	// ListBackupJobs lists the Jobs of the EtcdBackups of a namespace, and ListBackupJobPods their pods.
	ListBackupJobs(ctx context.Context, namespace string) ([]*batchv1.Job, error)
	ListBackupJobPods(ctx context.Context, namespace string) ([]*corev1.Pod, error)

	CreateBackup(ctx context.Context, backup *v1beta2.EtcdBackup) (*v1beta2.EtcdBackup, error)
}

// What both controllers of transfers are given.
type (
	// Gate knows which of the controller's own writes the cache has not shown yet.
	Gate = reconcile.Gate
	// Recorder records events about an object.
	Recorder = reconcile.Recorder
	// Progress asks a running agent how far it has come.
	Progress = job.Progress
)
