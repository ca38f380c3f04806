// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/agentjob"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
	etcdlisters "github.com/etcd-operator/etcd-operator/pkg/generated/listers/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Listers is the Cache that informers fill.
type Listers struct {
	EtcdBackups  etcdlisters.EtcdBackupLister
	EtcdClusters etcdlisters.EtcdClusterLister
	MemberPods   corelisters.PodLister
	JobList      batchlisters.JobLister
	PodsOfJobs   corelisters.PodLister
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
	return l.MemberPods.Pods(namespace).List(labels.SelectorFromSet(resources.Labels(name)))
}

// Jobs implements Cache.
func (l Listers) Jobs(namespace string, backup types.UID) ([]*batchv1.Job, error) {
	return l.JobList.Jobs(namespace).List(jobSelector(backup))
}

// AllJobs implements Cache.
func (l Listers) AllJobs() ([]*batchv1.Job, error) { return l.JobList.List(ofBackups) }

// JobPods implements Cache.
func (l Listers) JobPods(namespace string, backup types.UID) ([]*corev1.Pod, error) {
	return l.PodsOfJobs.Pods(namespace).List(jobSelector(backup))
}

// AllJobPods implements Cache.
func (l Listers) AllJobPods() ([]*corev1.Pod, error) { return l.PodsOfJobs.List(ofBackups) }

// ofBackups selects the Jobs of all EtcdBackups; others are in the same cache.
var ofBackups = labels.SelectorFromSet(labels.Set{resources.LabelApp: resources.BackupAppName})

func jobSelector(backup types.UID) labels.Selector {
	return labels.SelectorFromSet(resources.BackupLabels(backup))
}

// API is the live API, through clients.
type API struct {
	Kubernetes kubernetes.Interface
	Etcd       versioned.Interface
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

// GetJob implements Objects.
func (a API) GetJob(ctx context.Context, namespace, name string) (*batchv1.Job, error) {
	return a.Kubernetes.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
}

// ListJobs implements Objects.
func (a API) ListJobs(ctx context.Context, namespace string, backup types.UID) ([]batchv1.Job, error) {
	list, err := a.Kubernetes.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{LabelSelector: jobSelector(backup).String()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// CreateJob implements Objects.
func (a API) CreateJob(ctx context.Context, job *batchv1.Job) (*batchv1.Job, error) {
	return a.Kubernetes.BatchV1().Jobs(job.Namespace).Create(ctx, job, metav1.CreateOptions{})
}

// DeleteJob implements Objects.
func (a API) DeleteJob(ctx context.Context, namespace, name string, only metav1.Preconditions) error {
	background := metav1.DeletePropagationBackground
	return a.Kubernetes.BatchV1().Jobs(namespace).Delete(ctx, name, metav1.DeleteOptions{
		Preconditions: &only, PropagationPolicy: &background,
	})
}

// ListJobPods implements Objects.
func (a API) ListJobPods(ctx context.Context, namespace string, backup types.UID) ([]corev1.Pod, error) {
	list, err := a.Kubernetes.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: jobSelector(backup).String()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// ListJobEvents implements Objects.
func (a API) ListJobEvents(ctx context.Context, namespace string, job types.UID) ([]corev1.Event, error) {
	about := fields.Set{"involvedObject.uid": string(job), "reason": agentjob.EventRefused}
	list, err := a.Kubernetes.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: about.String()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
