// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/job"
	plannerjob "github.com/etcd-operator/etcd-operator/pkg/planner/job"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/restore"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// seen is an observation with the objects that it was made of.
type seen struct {
	planner.Observed
	jobs []*batchv1.Job
}

// observe reads the caches. What a deletion depends on is read live: a request that the
// cache does not show yet must be taken back, too.
func (r *Reconciler) observe(ctx context.Context, restore *v1beta2.EtcdRestore) (*seen, error) {
	s := &seen{Observed: planner.Observed{Now: r.Clock.Now(), Restore: restore}}
	cluster, err := r.Cache.Cluster(restore.Namespace, restore.Spec.EtcdCluster.Name)
	if restore.DeletionTimestamp != nil {
		cluster, err = r.Objects.GetCluster(ctx, restore.Namespace, restore.Spec.EtcdCluster.Name)
	}
	switch {
	case err == nil:
		s.Cluster = cluster
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("read the cluster: %w", err)
	}
	if err := r.observeSource(s); err != nil {
		return nil, err
	}
	if err := r.observeRecoveryMember(s); err != nil {
		return nil, err
	}
	if err := r.observePruners(s); err != nil {
		return nil, err
	}
	jobs, err := r.Cache.Jobs(restore.Namespace, restore.UID)
	if err != nil {
		return nil, fmt.Errorf("list Jobs from the cache: %w", err)
	}
	return s, r.observeJobs(ctx, s, jobs)
}

// observePruners finds the Jobs that may delete what the restore reads.
func (r *Reconciler) observePruners(s *seen) error {
	jobs, err := r.Cache.BackupJobs(s.Restore.Namespace)
	if err != nil {
		return fmt.Errorf("list Jobs of backups from the cache: %w", err)
	}
	pods, err := r.Cache.BackupJobPods(s.Restore.Namespace)
	if err != nil {
		return fmt.Errorf("list pods of backups from the cache: %w", err)
	}
	s.Pruners = job.RunningPruners(jobs, pods, s.Now)
	return nil
}

// observeLive reads live what the cache may not show yet. That is a Job that began a moment before the EtcdRestore was
// created. It is also the deletion of a Job of the restore because of such a Job.
func (r *Reconciler) observeLive(ctx context.Context, s *seen) error {
	namespace := s.Restore.Namespace
	// The Jobs first: a Job that is deleted in between has left its pods.
	jobs, err := r.Objects.ListBackupJobs(ctx, namespace)
	if err != nil {
		return fmt.Errorf("list Jobs of backups: %w", err)
	}
	pods, err := r.Objects.ListBackupJobPods(ctx, namespace)
	if err != nil {
		return fmt.Errorf("list pods of backups: %w", err)
	}
	s.Pruners = job.RunningPruners(jobs, pods, s.Now)
	list, err := r.Objects.ListJobs(ctx, namespace, s.Restore.UID)
	if err != nil {
		return fmt.Errorf("list Jobs: %w", err)
	}
	own := make([]*batchv1.Job, 0, len(list))
	for i := range list {
		own = append(own, &list[i])
	}
	return r.observeJobs(ctx, s, own)
}

func (r *Reconciler) observeSource(s *seen) error {
	others, err := r.Cache.Restores(s.Restore.Namespace)
	if err != nil {
		return fmt.Errorf("list the restores from the cache: %w", err)
	}
	for _, other := range others {
		if other.UID != s.Restore.UID && other.Spec.EtcdCluster.Name == s.Restore.Spec.EtcdCluster.Name {
			s.Others = append(s.Others, other)
		}
	}
	if ref := s.Restore.Spec.Backup; ref != nil {
		if s.Backup, err = r.backup(s, ref.Name); err != nil {
			return err
		}
	}
	if name := s.PreRestoreBackupName(); name != "" {
		s.PreRestore, err = r.backup(s, name)
	}
	return err
}

// backup returns an EtcdBackup, nil if there is none of that name.
func (r *Reconciler) backup(s *seen, name string) (*v1beta2.EtcdBackup, error) {
	backup, err := r.Cache.Backup(s.Restore.Namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read EtcdBackup %s from the cache: %w", name, err)
	}
	return backup, nil
}

// observeRecoveryMember reads the results of the init containers of the recovery member.
func (r *Reconciler) observeRecoveryMember(s *seen) error {
	if s.Cluster == nil {
		return nil
	}
	recovery := s.Cluster.Status.Recovery
	if recovery == nil || recovery.ID != string(s.Restore.UID) || recovery.RecoveryMember == "" {
		return nil
	}
	pod, err := r.Cache.Member(s.Cluster.Namespace, recovery.RecoveryMember)
	if apierrors.IsNotFound(err) || err == nil && !resources.Owns(s.Cluster, pod) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read pod %s from the cache: %w", recovery.RecoveryMember, err)
	}
	s.RecoveryMember = recoveryMemberOf(pod)
	return nil
}

// recoveryMemberOf reads the results of the agent in the init containers of a recovery member.
func recoveryMemberOf(pod *corev1.Pod) *planner.RecoveryMember {
	member := &planner.RecoveryMember{Fills: resources.Fills(pod), FailsToFill: resources.FailsToFill(pod)}
	for i := range pod.Status.InitContainerStatuses {
		c := &pod.Status.InitContainerStatuses[i]
		end := c.State.Terminated
		if end == nil {
			end = c.LastTerminationState.Terminated
		}
		if end == nil || c.Name != resources.InitFetch && c.Name != resources.InitRestore {
			continue
		}
		result, err := job.ResultOf(end)
		switch {
		case err != nil && end.ExitCode != 0:
			reason, message := job.EndedSilently(c.Name, end)
			member.Failing = &planner.Wait{Reason: reason, Message: message}
		case err != nil:
		case result.Error != nil && !result.Error.Class.IsRetryable():
			member.Rejected = &planner.Wait{Reason: string(result.Error.Class), Message: job.Shorten(result.Error.Message)}
		case result.Error != nil:
			member.Failing = &planner.Wait{Reason: string(result.Error.Class), Message: job.Shorten(result.Error.Message)}
		case c.Name == resources.InitRestore:
			member.Revision = result.Revision
		}
	}
	if pod.Status.Phase == corev1.PodFailed && member.Failing == nil {
		reason, message := job.PodReason(pod)
		member.Failing = &planner.Wait{Reason: reason, Message: message}
	}
	if waiting := job.WaitingFor(pod); waiting != "" && member.Failing == nil {
		member.Failing = &planner.Wait{Reason: planner.ReasonRecoveryMemberNotStarted, Message: waiting}
	}
	return member
}

func (r *Reconciler) observeJobs(ctx context.Context, s *seen, jobs []*batchv1.Job) error {
	s.jobs, s.Jobs = nil, nil
	pods, err := r.Cache.JobPods(s.Restore.Namespace, s.Restore.UID)
	if err != nil {
		return fmt.Errorf("list pods of Jobs from the cache: %w", err)
	}
	for _, j := range jobs {
		if !metav1.IsControlledBy(j, s.Restore) {
			continue
		}
		attempt, err := strconv.ParseInt(j.Annotations[resources.AnnotationRestoreAttempt], 10, 32)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Ignored a Job without the annotations of an attempt", "job", klog.KObj(j))
			continue
		}
		own, err := r.jobs().Pods(ctx, s.Restore, j, pods)
		if err != nil {
			return err
		}
		s.jobs = append(s.jobs, j)
		s.Jobs = append(s.Jobs, r.viewOf(ctx, j, int32(attempt), own))
	}
	return nil
}

// jobs looks at the Jobs, and deletes them.
func (r *Reconciler) jobs() job.Observer {
	return job.Observer{Objects: r.Objects, Progress: r.Progress}
}

// viewOf says what has become of a Job.
func (r *Reconciler) viewOf(ctx context.Context, j *batchv1.Job, attempt int32, pods []*corev1.Pod) planner.Job {
	seen := r.jobs().Observe(ctx, j, pods, r.Clock.Now())
	v := planner.Job{Job: seen.Job, Attempt: attempt, Target: j.Annotations[resources.AnnotationRestoreTarget]}
	switch {
	case seen.Finished != nil:
		v.Outcome = outcomeOf(j, seen.Finished)
	case seen.Lost != nil:
		v.Outcome = &planner.Outcome{
			Reason: plannerjob.ReasonJobLost, Message: job.LostMessage, Retryable: true,
			Completion: seen.Lost.LastTransitionTime.Time,
		}
	}
	return v
}

// outcomeOf reads what the agent said when it ended.
func outcomeOf(j *batchv1.Job, pod *corev1.Pod) *planner.Outcome {
	o := &planner.Outcome{Completion: j.CreationTimestamp.Time, Retryable: true}
	for _, c := range job.Containers(j, pod) {
		end := c.State.Terminated
		if end == nil || c.Name != resources.ContainerVerify {
			continue
		}
		if end.FinishedAt.After(o.Completion) {
			o.Completion = end.FinishedAt.Time
		}
		result, err := job.ResultOf(end)
		switch {
		case err == nil && result.Error != nil:
			o.Reason, o.Message = string(result.Error.Class), job.Shorten(job.Explain(j, result.Error))
			o.Retryable = result.Error.Class.IsRetryable()
		case end.ExitCode != 0 || err != nil:
			o.Reason, o.Message = job.EndedSilently(c.Name, end)
		default:
			o.Succeeded, o.Retryable = true, false
			o.Key, o.SHA256, o.Revision, o.Size = result.Key, result.SHA256, result.Revision, result.Size
			o.EtcdVersion, o.Encrypted, o.Verified = result.EtcdVersion, result.Encrypted, result.Verified
		}
		return o
	}
	o.Reason, o.Message = job.PodReason(pod)
	return o
}
