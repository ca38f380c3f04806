// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"

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

	EtcdRestores etcdlisters.EtcdRestoreLister
	EtcdBackups  etcdlisters.EtcdBackupLister
	EtcdClusters etcdlisters.EtcdClusterLister
	MemberPods   corelisters.PodLister
}

// Restore implements Cache.
func (l Listers) Restore(namespace, name string) (*v1beta2.EtcdRestore, error) {
	return l.EtcdRestores.EtcdRestores(namespace).Get(name)
}

// Restores implements Cache.
func (l Listers) Restores(namespace string) ([]*v1beta2.EtcdRestore, error) {
	return l.EtcdRestores.EtcdRestores(namespace).List(labels.Everything())
}

// Backup implements Cache.
func (l Listers) Backup(namespace, name string) (*v1beta2.EtcdBackup, error) {
	return l.EtcdBackups.EtcdBackups(namespace).Get(name)
}

// Cluster implements Cache.
func (l Listers) Cluster(namespace, name string) (*v1beta2.EtcdCluster, error) {
	return l.EtcdClusters.EtcdClusters(namespace).Get(name)
}

// Member implements Cache.
func (l Listers) Member(namespace, name string) (*corev1.Pod, error) {
	return l.MemberPods.Pods(namespace).Get(name)
}

// API is the live API, through clients.
type API struct {
	agentjob.API

	Etcd versioned.Interface
}

// NewAPI returns the API that these clients lead to.
func NewAPI(kubernetes kubernetes.Interface, etcd versioned.Interface) API {
	return API{API: agentjob.API{Kubernetes: kubernetes, Labels: resources.RestoreLabels}, Etcd: etcd}
}

// GetRestore implements Objects.
func (a API) GetRestore(ctx context.Context, namespace, name string) (*v1beta2.EtcdRestore, error) {
	return a.Etcd.EtcdV1beta2().EtcdRestores(namespace).Get(ctx, name, metav1.GetOptions{})
}

// UpdateRestore implements Objects.
func (a API) UpdateRestore(ctx context.Context, restore *v1beta2.EtcdRestore) (*v1beta2.EtcdRestore, error) {
	return a.Etcd.EtcdV1beta2().EtcdRestores(restore.Namespace).Update(ctx, restore, metav1.UpdateOptions{})
}

// UpdateRestoreStatus implements Objects.
func (a API) UpdateRestoreStatus(ctx context.Context, restore *v1beta2.EtcdRestore) (*v1beta2.EtcdRestore, error) {
	return a.Etcd.EtcdV1beta2().EtcdRestores(restore.Namespace).UpdateStatus(ctx, restore, metav1.UpdateOptions{})
}

// GetCluster implements Objects.
func (a API) GetCluster(ctx context.Context, namespace, name string) (*v1beta2.EtcdCluster, error) {
	return a.Etcd.EtcdV1beta2().EtcdClusters(namespace).Get(ctx, name, metav1.GetOptions{})
}

// CreateCluster implements Objects.
func (a API) CreateCluster(ctx context.Context, cluster *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	return a.Etcd.EtcdV1beta2().EtcdClusters(cluster.Namespace).Create(ctx, cluster, metav1.CreateOptions{})
}

// UpdateClusterStatus implements Objects.
func (a API) UpdateClusterStatus(ctx context.Context, cluster *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	return a.Etcd.EtcdV1beta2().EtcdClusters(cluster.Namespace).UpdateStatus(ctx, cluster, metav1.UpdateOptions{})
}

// DeleteCluster implements Objects.
func (a API) DeleteCluster(ctx context.Context, namespace, name string, only metav1.Preconditions) error {
	background := metav1.DeletePropagationBackground
	return a.Etcd.EtcdV1beta2().EtcdClusters(namespace).Delete(ctx, name, metav1.DeleteOptions{
		Preconditions: &only, PropagationPolicy: &background,
	})
}

// CreateBackup implements Objects.
func (a API) CreateBackup(ctx context.Context, backup *v1beta2.EtcdBackup) (*v1beta2.EtcdBackup, error) {
	return a.Etcd.EtcdV1beta2().EtcdBackups(backup.Namespace).Create(ctx, backup, metav1.CreateOptions{})
}
