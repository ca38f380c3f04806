// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/controller/agentjob"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// viewOf says what has become of a Job. Its pod knows more than the Job, and earlier.
func (r *Reconciler) viewOf(ctx context.Context, job *batchv1.Job, attempt planner.Attempt, pods []*corev1.Pod) planner.Job {
	v := planner.Job{
		Name: job.Name, Attempt: attempt, Created: job.CreationTimestamp.Time, Deleting: job.DeletionTimestamp != nil,
	}
	if pod := agentjob.NewestFinished(pods); pod != nil {
		v.Started = true
		v.Outcome = outcomeOf(job, pod)
		return v
	}
	if end := agentjob.Ended(job); end != nil {
		v.Started = true
		v.Outcome = withoutPod(job, end)
		return v
	}
	if agentjob.MayBeRefused(job, pods, r.Clock.Now()) {
		v.Refused, v.Waiting = true, r.refused(ctx, job)
	}
	for _, pod := range pods {
		v.PodMade = pod.CreationTimestamp.Time
		if agentjob.Started(pod) {
			v.Started = true
			if pod.DeletionTimestamp == nil && pod.Status.PodIP != "" {
				progress, err := r.Progress.Of(ctx, pod.Status.PodIP)
				if err != nil {
					klog.FromContext(ctx).V(4).Info("The agent did not say how far it is", "pod", klog.KObj(pod), "error", err)
				}
				v.Progress = progress
			}
		} else if v.Waiting == "" {
			v.Waiting = agentjob.WaitingFor(pod)
		}
	}
	return v
}

// refused says why Kubernetes makes no pod for a Job; "" if that cannot be told.
func (r *Reconciler) refused(ctx context.Context, job *batchv1.Job) string {
	events, err := r.Objects.ListJobEvents(ctx, job.Namespace, job.UID)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Why a Job has no pod cannot be read", "job", klog.KObj(job))
		return ""
	}
	return agentjob.RefusedFor(job, events)
}

// outcomeOf reads what the agent said when it ended: one container that failed is a
// backup that failed.
func outcomeOf(job *batchv1.Job, pod *corev1.Pod) *planner.Outcome {
	o := &planner.Outcome{Start: job.CreationTimestamp.Time}
	var saved *agent.Result
	verified := true
	for _, c := range agentjob.Containers(pod) {
		end := c.State.Terminated
		if end == nil {
			continue // a container before it has failed
		}
		o.Completion = end.FinishedAt.Time
		result, err := agent.DecodeResult(end.Message)
		switch {
		case c.Name == resources.ContainerInstall && end.ExitCode == 0:
			continue
		case err == nil && result.Error != nil:
			o.Reason, o.Message = string(result.Error.Class), agentjob.Shorten(agentjob.Explain(job, result.Error))
			return finished(o)
		case end.ExitCode != 0 || err != nil:
			o.Reason, o.Message = agentjob.EndedSilently(c.Name, end)
			return finished(o)
		case c.Name == resources.ContainerSave:
			saved = result
			verified = result.Verified
		}
	}
	if saved == nil || pod.Status.Phase != corev1.PodSucceeded {
		o.Reason, o.Message = agentjob.PodReason(pod)
		return finished(o)
	}
	o.Succeeded = true
	o.URI, o.EtcdVersion, o.Revision, o.Member = saved.URI, saved.EtcdVersion, saved.Revision, saved.Member
	o.SnapshotSize, o.StoredSize, o.SHA256, o.Verified = saved.Size, saved.StoredSize, saved.SHA256, verified
	o.Warning = agentjob.Shorten(saved.Warning)
	return finished(o)
}

// finished makes sure that an attempt does not end before it began, whatever the clocks
// of the nodes say.
func finished(o *planner.Outcome) *planner.Outcome {
	if o.Completion.Before(o.Start) {
		o.Completion = o.Start
	}
	return o
}

// withoutPod is about a Job whose pod is gone.
func withoutPod(job *batchv1.Job, end *batchv1.JobCondition) *planner.Outcome {
	o := &planner.Outcome{Start: job.CreationTimestamp.Time, Completion: end.LastTransitionTime.Time}
	o.Reason, o.Message = planner.ReasonJobLost, "the pod was deleted before it said what came of it"
	if end.Type == batchv1.JobFailed && end.Reason == batchv1.JobReasonDeadlineExceeded {
		o.Reason = end.Reason
		o.Message = fmt.Sprintf("the attempt took longer than spec.backupPolicy.timeoutInSecond (%s)",
			time.Duration(timeoutOf(job))*time.Second)
	}
	return finished(o)
}

func timeoutOf(job *batchv1.Job) int64 {
	if t := job.Spec.ActiveDeadlineSeconds; t != nil {
		return *t
	}
	return 0
}
