// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package agentjob

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/planner/transfer"
)

// Observer finds out what has become of Jobs.
type Observer struct {
	Objects  Objects
	Progress Progress
}

// Pods returns those of the cached pods that a Job has made. Those of a Job that has ended
// are read live if the cache does not show how: the pod knows the result.
func (o Observer) Pods(ctx context.Context, owner metav1.Object, job *batchv1.Job, cached []*corev1.Pod) ([]*corev1.Pod, error) {
	own := PodsOf(job, cached)
	if Ended(job) == nil || NewestFinished(job, own) != nil {
		return own, nil
	}
	list, err := o.Objects.ListJobPods(ctx, owner.GetNamespace(), owner.GetUID())
	if err != nil {
		return nil, fmt.Errorf("list pods of Jobs: %w", err)
	}
	pods := make([]*corev1.Pod, 0, len(list))
	for i := range list {
		pods = append(pods, &list[i])
	}
	return PodsOf(job, pods), nil
}

// Seen is what has become of a Job. Its pod knows more than the Job, and earlier.
type Seen struct {
	transfer.Job

	// Finished is the pod that tells how it has ended, nil if there is none.
	Finished *corev1.Pod
	// Lost is the condition with which it has ended without such a pod, nil if it has not.
	Lost *batchv1.JobCondition
}

// Look says what has become of a Job, whose pods these are.
func (o Observer) Look(ctx context.Context, job *batchv1.Job, pods []*corev1.Pod, now time.Time) Seen {
	s := Seen{Job: transfer.Job{Name: job.Name, Created: job.CreationTimestamp.Time, Deleting: job.DeletionTimestamp != nil}}
	if s.Finished = NewestFinished(job, pods); s.Finished != nil {
		s.Started = true
		return s
	}
	if s.Lost = Ended(job); s.Lost != nil {
		s.Started = true
		return s
	}
	if MayBeRefused(job, pods, now) {
		s.Refused, s.Waiting = true, o.refused(ctx, job)
	}
	for _, pod := range pods {
		s.PodMade = pod.CreationTimestamp.Time
		switch {
		case !Started(job, pod):
			s.Waiting = WaitingFor(pod)
		case pod.DeletionTimestamp == nil && pod.Status.PodIP != "":
			progress, err := o.Progress.Of(ctx, pod.Status.PodIP)
			if err != nil {
				klog.FromContext(ctx).V(4).Info("The agent did not say how far it is", "pod", klog.KObj(pod), "error", err)
			}
			s.Started, s.Progress = true, progress
		default:
			s.Started = true
		}
	}
	return s
}

// refused says why Kubernetes makes no pod for a Job; "" if that cannot be told.
func (o Observer) refused(ctx context.Context, job *batchv1.Job) string {
	events, err := o.Objects.ListJobEvents(ctx, job.Namespace, job.UID)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Why a Job has no pod cannot be read", "job", klog.KObj(job))
		return ""
	}
	return RefusedFor(job, events)
}

// Delete deletes the one of the Jobs that has this name, as it was observed.
func (o Observer) Delete(ctx context.Context, jobs []*batchv1.Job, name string) error {
	for _, job := range jobs {
		if job.Name != name {
			continue
		}
		err := o.Objects.DeleteJob(ctx, job.Namespace, name, metav1.Preconditions{UID: &job.UID})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete Job %s: %w", name, err)
		}
	}
	return nil
}
