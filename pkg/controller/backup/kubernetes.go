// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/agentjob"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
	etcdlisters "github.com/etcd-operator/etcd-operator/pkg/generated/listers/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Listers is the Cache that informers fill.
type Listers struct {
	agentjob.Listers

	EtcdBackups  etcdlisters.EtcdBackupLister
	EtcdClusters etcdlisters.EtcdClusterLister
	MemberPods   corelisters.PodLister
}

// Backup implements Cache.
func (l Listers) Backup(namespace, name string) (*v1beta2.EtcdBackup, error) {
	return l.EtcdBackups.EtcdBackups(namespace).Get(name)
}

// Backups implements Cache.
func (l Listers) Backups(namespace string) ([]*v1beta2.EtcdBackup, error) {
	return l.EtcdBackups.EtcdBackups(namespace).List(labels.Everything())
}

// Cluster implements Cache.
func (l Listers) Cluster(namespace, name string) (*v1beta2.EtcdCluster, error) {
	return l.EtcdClusters.EtcdClusters(namespace).Get(name)
}

// Members implements Cache.
func (l Listers) Members(namespace, name string) ([]*corev1.Pod, error) {
	pods, err := l.MemberPods.Pods(namespace).List(labels.SelectorFromSet(resources.Labels(name)))
	return slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return resources.IsPrepared(p.Annotations) }), err
}

// AllJobs implements Cache.
func (l Listers) AllJobs() ([]*batchv1.Job, error) { return l.JobList.List(ofBackups) }

// AllJobPods implements Cache.
func (l Listers) AllJobPods() ([]*corev1.Pod, error) { return l.PodsOfJobs.List(ofBackups) }

// ofBackups selects the Jobs of all EtcdBackups; others are in the same cache.
var ofBackups = labels.SelectorFromSet(labels.Set{resources.LabelApp: resources.BackupAppName})

// API is the live API, through clients.
type API struct {
	agentjob.API

	Etcd versioned.Interface
}

// NewAPI returns the API that these clients lead to.
func NewAPI(kubernetes kubernetes.Interface, etcd versioned.Interface) API {
	return API{API: agentjob.API{Kubernetes: kubernetes, Labels: resources.BackupLabels}, Etcd: etcd}
}

// GetBackup implements Objects.
func (a API) GetBackup(ctx context.Context, namespace, name string) (*v1beta2.EtcdBackup, error) {
	return a.Etcd.EtcdV1beta2().EtcdBackups(namespace).Get(ctx, name, metav1.GetOptions{})
}

// CreateBackup implements Objects.
func (a API) CreateBackup(ctx context.Context, backup *v1beta2.EtcdBackup) (*v1beta2.EtcdBackup, error) {
	return a.Etcd.EtcdV1beta2().EtcdBackups(backup.Namespace).Create(ctx, backup, metav1.CreateOptions{})
}

// UpdateBackup implements Objects.
func (a API) UpdateBackup(ctx context.Context, backup *v1beta2.EtcdBackup) (*v1beta2.EtcdBackup, error) {
	return a.Etcd.EtcdV1beta2().EtcdBackups(backup.Namespace).Update(ctx, backup, metav1.UpdateOptions{})
}

// UpdateBackupStatus implements Objects.
func (a API) UpdateBackupStatus(ctx context.Context, backup *v1beta2.EtcdBackup) (*v1beta2.EtcdBackup, error) {
	return a.Etcd.EtcdV1beta2().EtcdBackups(backup.Namespace).UpdateStatus(ctx, backup, metav1.UpdateOptions{})
}

// UpdateClusterStatus implements Objects.
func (a API) UpdateClusterStatus(ctx context.Context, cluster *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	return a.Etcd.EtcdV1beta2().EtcdClusters(cluster.Namespace).UpdateStatus(ctx, cluster, metav1.UpdateOptions{})
}
