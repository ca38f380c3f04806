// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/controller/job"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/pkg/share"
)

// whyWait says what a backup waits for; nil if it has its place.
func (r *Reconciler) whyWait(w share.Work, lack share.Lack) *planner.Wait {
	switch lack {
	case share.OfCluster:
		return &planner.Wait{Reason: planner.ReasonAnotherBackupRuns, Message: fmt.Sprintf("another backup of EtcdCluster %s runs", w.Cluster.Name)}
	case share.OfNamespace:
		return &planner.Wait{Reason: planner.ReasonTooManyBackups, Message: fmt.Sprintf("as many backups run in namespace %s as there are free places, which are for other namespaces (--max-concurrent-backups=%d)", w.Key.Namespace, r.Places.Total)}
	case share.OfAll:
		return &planner.Wait{Reason: planner.ReasonTooManyBackups, Message: fmt.Sprintf("%d backups run, or are due before this backup, which is the limit (--max-concurrent-backups)", r.Places.Total)}
	case share.Nothing:
	}
	return nil
}

// running lists the Jobs that have not ended and that belong to an EtcdBackup: everyone may label a Job. A Job whose pod Kubernetes does not start does
// not count: it may wait for a PVC that is never created. Neither does one whose pod is on a lost node: nothing tells
// that it ever ends, and the backups of all other clusters would wait for it.
func (r *Reconciler) running() ([]share.Work, error) {
	jobs, err := r.Cache.AllJobs()
	if err != nil {
		return nil, fmt.Errorf("list Jobs from the cache: %w", err)
	}
	pods, err := r.Cache.AllJobPods()
	if err != nil {
		return nil, fmt.Errorf("list pods of Jobs from the cache: %w", err)
	}
	made := map[types.UID][]*corev1.Pod{}
	for _, pod := range pods {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
			made[owner.UID] = append(made[owner.UID], pod)
		}
	}
	var running []share.Work
	for _, j := range jobs {
		of, known := r.backupOf(j)
		if !known {
			continue
		}
		young := r.Clock.Since(j.CreationTimestamp.Time) < startGrace
		moving := slices.ContainsFunc(made[j.UID], func(pod *corev1.Pod) bool { return job.HasStarted(j, pod) })
		lost := job.LostNodeOf(j, made[j.UID], r.Clock.Now()) != nil
		if job.Ended(j) == nil && j.DeletionTimestamp == nil && !lost && (young || moving) {
			running = append(running, share.Work{Key: of, Cluster: types.NamespacedName{Namespace: j.Namespace, Name: j.Annotations[resources.AnnotationSource]}})
		}
	}
	return running, nil
}

// backupOf returns the EtcdBackup of the cache that controls a Job.
func (r *Reconciler) backupOf(j *batchv1.Job) (key types.NamespacedName, known bool) {
	owner := metav1.GetControllerOfNoCopy(j)
	if owner == nil {
		return key, false
	}
	b, err := r.Cache.Backup(j.Namespace, owner.Name)
	return types.NamespacedName{Namespace: j.Namespace, Name: owner.Name}, err == nil && b.UID == owner.UID
}

// releaseReservation drops the reservation of a backup and wakes the backups that may start now.
func (r *Reconciler) releaseReservation(key types.NamespacedName) {
	r.queue.End(key)
	r.wakeNext()
}

func (r *Reconciler) wakeNext() {
	running, err := r.running()
	if err != nil {
		return // waiting backups look again after placeRetry
	}
	for _, key := range r.queue.Next(running...) {
		r.Wake(key)
	}
}
