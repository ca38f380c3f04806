// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

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
	Backup(namespace, name string) (*v1beta2.EtcdBackup, error)
	// Backups lists the EtcdBackups of a namespace.
	Backups(namespace string) ([]*v1beta2.EtcdBackup, error)
	Cluster(namespace, name string) (*v1beta2.EtcdCluster, error)
	// Clusters lists the EtcdClusters of a namespace.
	Clusters(namespace string) ([]*v1beta2.EtcdCluster, error)
	// Restores lists the EtcdRestores of a namespace.
	Restores(namespace string) ([]*v1beta2.EtcdRestore, error)
	// Members lists the pods that carry the labels of the cluster called name.
	Members(namespace, name string) ([]*corev1.Pod, error)
	// Jobs lists the Jobs of one EtcdBackup, AllJobs those of all of them.
	Jobs(namespace string, backup types.UID) ([]*batchv1.Job, error)
	AllJobs() ([]*batchv1.Job, error)
	// JobPods lists the pods of the Jobs of one EtcdBackup, AllJobPods those of all.
	JobPods(namespace string, backup types.UID) ([]*corev1.Pod, error)
	AllJobPods() ([]*corev1.Pod, error)
}

// Objects reads and writes the live API. A read here is never older than the moment at
// which it is made.
type Objects interface {
	job.Objects

	GetBackup(ctx context.Context, namespace, name string) (*v1beta2.EtcdBackup, error)
	GetCluster(ctx context.Context, namespace, name string) (*v1beta2.EtcdCluster, error)
	ListRestores(ctx context.Context, namespace string) ([]*v1beta2.EtcdRestore, error)
	ListBackups(ctx context.Context, namespace string) ([]*v1beta2.EtcdBackup, error)
	DeleteBackup(ctx context.Context, namespace, name string, only metav1.Preconditions) error
	CreateBackup(ctx context.Context, backup *v1beta2.EtcdBackup) (*v1beta2.EtcdBackup, error)
	UpdateBackup(ctx context.Context, backup *v1beta2.EtcdBackup) (*v1beta2.EtcdBackup, error)
	UpdateBackupStatus(ctx context.Context, backup *v1beta2.EtcdBackup) (*v1beta2.EtcdBackup, error)
	UpdateClusterStatus(ctx context.Context, cluster *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error)
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
