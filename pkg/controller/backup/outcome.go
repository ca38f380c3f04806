// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/job"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// viewOf says what has become of a Job.
func (r *Reconciler) viewOf(ctx context.Context, j *batchv1.Job, attempt planner.Attempt, pods []*corev1.Pod) planner.Job {
	now := r.Clock.Now()
	seen := r.jobs().Observe(ctx, j, pods, now)
	v := planner.Job{Job: seen.Job, Attempt: attempt, Pruner: job.PrunerOf(j), SharesKey: resources.SharesKey(&j.Spec.Template.Spec)}
	switch {
	case seen.Finished != nil:
		v.Outcome = finished(outcomeOf(j, attempt, seen.Finished), now)
	case seen.Lost != nil:
		v.Outcome = finished(withoutPod(j, seen.Lost), now)
	}
	return v
}

// outcomeOf reads what the agent said when it ended: one container that failed is a
// backup that failed.
func outcomeOf(j *batchv1.Job, attempt planner.Attempt, pod *corev1.Pod) *planner.Outcome {
	o := &planner.Outcome{Start: j.CreationTimestamp.Time}
	var saved *agent.Result
	found, verified, by := false, true, v1beta2.Verification("")
	for _, c := range job.Containers(j, pod) {
		end := c.State.Terminated
		if end == nil {
			continue // a container before it has failed
		}
		o.Completion = endOf(j, pod, end)
		result, err := agent.DecodeResult(end.Message)
		switch {
		case c.Name == resources.ContainerInstall && end.ExitCode == 0:
			continue
		case err == nil && result.Error != nil:
			o.Reason, o.Message = string(result.Error.Class), job.Shorten(job.Explain(j, result.Error))
			return o
		case end.ExitCode != 0 || err != nil:
			o.Reason, o.Message = job.EndedSilently(c.Name, end)
			return o
		case c.Name == resources.ContainerSave, c.Name == resources.ContainerComplete:
			saved = result // the last one says what followed, too
			found = found || result.AlreadyDone
			verified, by = result.Verified, result.VerifiedBy
		case c.Name == resources.ContainerRestore:
			by = v1beta2.VerificationRestore
		}
	}
	if saved == nil || !job.HasSucceeded(j, pod) {
		o.Reason, o.Message = job.PodReason(pod)
		return o
	}
	o.Succeeded = true
	if found {
		dateBack(o, attempt, saved.FinishedAt)
	}
	o.URI, o.EtcdVersion, o.Revision, o.Member = saved.URI, saved.EtcdVersion, saved.Revision, saved.Member
	o.SnapshotSize, o.StoredSize, o.SHA256, o.Verified = saved.Size, saved.StoredSize, saved.SHA256, verified
	if verified {
		o.VerifiedBy = by
	}
	o.Unconfirmed, o.DataDiffers, o.RaftIndex, o.Warning = saved.Unconfirmed, saved.DataDiffers, saved.RaftIndex, job.Shorten(saved.Warning)
	o.Unproved, o.UnprovedAt, o.Spared = saved.Unproved, job.Shorten(saved.UnprovedAt), saved.Spared
	return o
}

// endOf returns when a container ended: as its node says, but no earlier than the node measured after the creation of the
// pod. By a clock that is behind, a long backup would have ended when it began. A pre-restore backup would then be too old as
// soon as it is stored, and full copies would follow each other. A clock that was set meanwhile measures too much: what it
// measured ends with the Job.
func endOf(j *batchv1.Job, pod *corev1.Pod, end *corev1.ContainerStateTerminated) time.Time {
	at := end.FinishedAt.Time
	if pod.Status.StartTime == nil {
		return at
	}
	measured := pod.CreationTimestamp.Add(at.Sub(pod.Status.StartTime.Time))
	if ended := job.Ended(j); ended != nil && ended.LastTransitionTime.Time.Before(measured) {
		measured = ended.LastTransitionTime.Time
	}
	if measured.After(at) {
		return measured
	}
	return at
}

// dateBack gives a backup that an earlier attempt has stored the time of that attempt: later writes are not in it,
// however late it is found.
func dateBack(o *planner.Outcome, attempt planner.Attempt, made *time.Time) {
	if attempt.ScheduledTime.Before(o.Start) {
		o.Start = attempt.ScheduledTime
	}
	if made != nil && made.Before(o.Completion) {
		o.Completion = *made
	}
}

// finished makes sure that an attempt ends neither before it began nor after now, by the clock of Kubernetes, whatever
// the clocks of the nodes say. A backup of the future would stay the last one whatever was stored after it.
func finished(o *planner.Outcome, now time.Time) *planner.Outcome {
	if o.Completion.After(now) {
		o.Completion = now
	}
	if o.Completion.Before(o.Start) {
		o.Completion = o.Start
	}
	return o
}

// withoutPod returns the outcome of a Job whose pod no longer exists.
func withoutPod(j *batchv1.Job, end *batchv1.JobCondition) *planner.Outcome {
	o := &planner.Outcome{Start: j.CreationTimestamp.Time, Completion: end.LastTransitionTime.Time}
	o.Reason, o.Message = planner.ReasonJobLost, job.LostMessage
	if end.Type == batchv1.JobFailed && end.Reason == batchv1.JobReasonDeadlineExceeded {
		o.Reason = end.Reason
		o.Message = fmt.Sprintf("the attempt took longer than spec.backupPolicy.timeoutInSecond (%s)",
			time.Duration(timeoutOf(j))*time.Second)
	}
	return o
}

func timeoutOf(j *batchv1.Job) int64 {
	if t := j.Spec.ActiveDeadlineSeconds; t != nil {
		return *t
	}
	return 0
}
