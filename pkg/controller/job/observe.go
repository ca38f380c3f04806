// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/job"
)

// Observer observes Jobs.
type Observer struct {
	Objects  Objects
	Progress Progress
}

// Pods returns the cached pods that a Job has created. The pods of a Job that has ended are
// read live if the cache shows none that finished: the pod holds the result.
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

// Observed is the state of a Job. Its pod tells more than the Job, and earlier.
type Observed struct {
	planner.Job

	// Finished is the pod that holds the result of the Job, nil if there is none.
	Finished *corev1.Pod
	// Lost is the condition of a Job that ended without such a pod, nil otherwise.
	Lost *batchv1.JobCondition
}

// Observe returns the state of a Job with these pods.
func (o Observer) Observe(ctx context.Context, job *batchv1.Job, pods []*corev1.Pod, now time.Time) Observed {
	s := Observed{Job: planner.Job{Name: job.Name, Created: job.CreationTimestamp.Time, Deleting: job.DeletionTimestamp != nil}}
	if s.Finished = NewestFinished(job, pods); s.Finished != nil {
		s.Started = true
		return s
	}
	if s.Lost = Ended(job); s.Lost != nil {
		s.Started = true
		return s
	}
	s.LostNode = LostNodeOf(job, pods, now)
	if mayBeRejected(job, pods, now) {
		s.Rejected, s.Waiting = true, o.rejection(ctx, job)
	}
	for _, pod := range pods {
		s.PodMade = pod.CreationTimestamp.Time
		switch {
		case !HasStarted(job, pod):
			s.Waiting, s.StepEnded = WaitingFor(pod), lastEnd(job, pod, now)
		case pod.DeletionTimestamp == nil:
			s.Running = &planner.RunningPod{Name: pod.Name, Node: pod.Spec.NodeName, Since: lastStart(job, pod, now)}
			s.Started, s.Progress = true, o.progress(ctx, pod)
		default:
			s.Started = true
		}
	}
	return s
}

// progress asks the agent in a pod how far it has come; nil if it does not respond.
func (o Observer) progress(ctx context.Context, pod *corev1.Pod) *v1beta2.TransferProgress {
	if pod.Status.PodIP == "" {
		return nil
	}
	progress, err := o.Progress.Of(ctx, pod.Status.PodIP)
	if err != nil {
		klog.FromContext(ctx).V(4).Info("The agent did not report its progress", "pod", klog.KObj(pod), "error", err)
	}
	return progress
}

// rejection returns why Kubernetes creates no pod for a Job; "" if that is unknown.
func (o Observer) rejection(ctx context.Context, job *batchv1.Job) string {
	events, err := o.Objects.ListJobEvents(ctx, job.Namespace, job.UID)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot read the events that tell why a Job has no pod", "job", klog.KObj(job))
		return ""
	}
	return rejectionIn(job, events)
}

// Delete deletes the Job of this name among the observed Jobs, by its UID.
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
