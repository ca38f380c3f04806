// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadapter

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	etcdlisters "github.com/etcd-operator/etcd-operator/pkg/generated/listers/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// JobCache is the cache of the reconcilers whose objects have Jobs: EtcdBackups and
// EtcdRestores. Labels selects the Jobs of one kind.
type JobCache struct {
	Labels LabelsOf

	JobList      batchlisters.JobLister
	PodsOfJobs   corelisters.PodLister
	EtcdClusters etcdlisters.EtcdClusterLister
	EtcdBackups  etcdlisters.EtcdBackupLister
	EtcdRestores etcdlisters.EtcdRestoreLister
	MemberPods   corelisters.PodLister
}

// Jobs lists the Jobs of one owner.
func (c JobCache) Jobs(namespace string, owner types.UID) ([]*batchv1.Job, error) {
	return c.JobList.Jobs(namespace).List(c.Labels.selector(owner))
}

// JobPods lists the pods of the Jobs of one owner.
func (c JobCache) JobPods(namespace string, owner types.UID) ([]*corev1.Pod, error) {
	return c.PodsOfJobs.Pods(namespace).List(c.Labels.selector(owner))
}

// ofBackups selects the Jobs of all EtcdBackups; the same cache holds those of EtcdRestores.
var ofBackups = labels.SelectorFromSet(labels.Set{resources.LabelApp: resources.BackupAppName})

// AllJobs implements backup.Cache.
func (c JobCache) AllJobs() ([]*batchv1.Job, error) { return c.JobList.List(ofBackups) }

// AllJobPods implements backup.Cache.
func (c JobCache) AllJobPods() ([]*corev1.Pod, error) { return c.PodsOfJobs.List(ofBackups) }

// BackupJobs implements restore.Cache.
func (c JobCache) BackupJobs(namespace string) ([]*batchv1.Job, error) {
	return c.JobList.Jobs(namespace).List(ofBackups)
}

// BackupJobPods implements restore.Cache.
func (c JobCache) BackupJobPods(namespace string) ([]*corev1.Pod, error) {
	return c.PodsOfJobs.Pods(namespace).List(ofBackups)
}

// Cluster returns an EtcdCluster.
func (c JobCache) Cluster(namespace, name string) (*v1beta2.EtcdCluster, error) {
	return c.EtcdClusters.EtcdClusters(namespace).Get(name)
}

// Clusters lists the EtcdClusters of a namespace.
func (c JobCache) Clusters(namespace string) ([]*v1beta2.EtcdCluster, error) {
	return c.EtcdClusters.EtcdClusters(namespace).List(labels.Everything())
}

// Backup returns an EtcdBackup.
func (c JobCache) Backup(namespace, name string) (*v1beta2.EtcdBackup, error) {
	return c.EtcdBackups.EtcdBackups(namespace).Get(name)
}

// Backups lists the EtcdBackups of a namespace.
func (c JobCache) Backups(namespace string) ([]*v1beta2.EtcdBackup, error) {
	return c.EtcdBackups.EtcdBackups(namespace).List(labels.Everything())
}

// Restore returns an EtcdRestore.
func (c JobCache) Restore(namespace, name string) (*v1beta2.EtcdRestore, error) {
	return c.EtcdRestores.EtcdRestores(namespace).Get(name)
}

// Restores lists the EtcdRestores of a namespace.
func (c JobCache) Restores(namespace string) ([]*v1beta2.EtcdRestore, error) {
	return c.EtcdRestores.EtcdRestores(namespace).List(labels.Everything())
}

// Member returns the pod of a member, or of the recovery member.
func (c JobCache) Member(namespace, name string) (*corev1.Pod, error) {
	return c.MemberPods.Pods(namespace).Get(name)
}

// Members lists the pods of members of a cluster. Pods that no member has used do not count.
func (c JobCache) Members(namespace, name string) ([]*corev1.Pod, error) {
	pods, err := c.MemberPods.Pods(namespace).List(labels.SelectorFromSet(resources.Labels(name)))
	return slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return resources.IsPrepared(p.Annotations) }), err
}
