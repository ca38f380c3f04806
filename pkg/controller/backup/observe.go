// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/job"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// seen is an observation with the objects that it was made of.
type seen struct {
	planner.Observed
	// cluster that the backup is of; nil if it names endpoints, or while there is none.
	cluster *v1beta2.EtcdCluster
	members []resources.MemberAddress
	jobs    []*batchv1.Job
}

// observe reads the caches, and the live API where a cache that lags behind would make
// a result look lost.
func (r *Reconciler) observe(ctx context.Context, b *v1beta2.EtcdBackup) (*seen, error) {
	s := &seen{Observed: planner.Observed{Now: r.Clock.Now(), Backup: b}}
	if err := r.observeSource(s); err != nil {
		return nil, err
	}
	restores, err := r.Cache.Restores(b.Namespace)
	if err != nil {
		return nil, fmt.Errorf("list restores from the cache: %w", err)
	}
	clusters, err := r.Cache.Clusters(b.Namespace)
	if err != nil {
		return nil, fmt.Errorf("list clusters from the cache: %w", err)
	}
	if s.Held, err = r.heldBy(b, restores, clusters); err != nil {
		return nil, err
	}
	if err := r.observeNeeded(s); err != nil {
		return nil, err
	}
	if err := r.observeJobs(ctx, s); err != nil {
		return nil, err
	}
	return s, nil
}

// heldBy returns what the retention of an EtcdBackup does not delete. The cache may show the other EtcdBackups late: a
// restore waits for the end of each Job that does not keep what it reads.
func (r *Reconciler) heldBy(b *v1beta2.EtcdBackup, restores []*v1beta2.EtcdRestore, clusters []*v1beta2.EtcdCluster) ([]string, error) {
	backups, err := r.Cache.Backups(b.Namespace)
	if err != nil {
		return nil, fmt.Errorf("list backups from the cache: %w", err)
	}
	return planner.Held(b, backups, restores, clusters, r.Clock.Now()), nil
}

// observeSource finds the members that a backup can read from.
func (r *Reconciler) observeSource(s *seen) error {
	ref := s.Backup.Spec.EtcdCluster
	if ref == nil {
		return nil
	}
	c, err := r.Cache.Cluster(s.Backup.Namespace, ref.Name)
	switch {
	case apierrors.IsNotFound(err):
		s.Source = &planner.Wait{Reason: planner.ReasonClusterNotFound, Message: fmt.Sprintf("EtcdCluster %s does not exist in this namespace", ref.Name)}
		return nil
	case err != nil:
		return fmt.Errorf("read cluster from the cache: %w", err)
	}
	s.cluster = c
	s.Recovered = planner.RecoveredAt(c)
	pods, err := r.Cache.Members(c.Namespace, c.Name)
	if err != nil {
		return fmt.Errorf("list members from the cache: %w", err)
	}
	for _, p := range pods {
		// A learner serves no snapshot. Whether a voter is healthy the agent finds out.
		if resources.Owns(c, p) && p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning &&
			p.Status.PodIP != "" && p.Labels[resources.LabelRole] != resources.RoleLearner {
			s.members = append(s.members, resources.MemberAddress{Name: p.Name, IP: p.Status.PodIP})
		}
	}
	slices.SortFunc(s.members, func(a, b resources.MemberAddress) int { return strings.Compare(a.Name, b.Name) })
	if len(s.members) == 0 {
		s.Source = &planner.Wait{Reason: planner.ReasonNoMemberRuns, Message: fmt.Sprintf("no member of EtcdCluster %s runs", c.Name)}
	}
	return nil
}

func (r *Reconciler) observeJobs(ctx context.Context, s *seen) error {
	b := s.Backup
	jobs, err := r.Cache.Jobs(b.Namespace, b.UID)
	if err != nil {
		return fmt.Errorf("list Jobs from the cache: %w", err)
	}
	pods, err := r.Cache.JobPods(b.Namespace, b.UID)
	if err != nil {
		return fmt.Errorf("list pods of Jobs from the cache: %w", err)
	}
	if runs(&b.Status) && !shows(jobs, &b.Status) {
		if jobs, err = r.liveJobs(ctx, b); err != nil {
			return err
		}
	}
	for _, j := range jobs {
		if !metav1.IsControlledBy(j, b) {
			continue
		}
		attempt, err := attemptOf(j)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Ignored a Job without the annotations of an attempt", "job", klog.KObj(j))
			continue
		}
		own, err := r.jobs().Pods(ctx, b, j, pods)
		if err != nil {
			return err
		}
		s.jobs = append(s.jobs, j)
		s.Jobs = append(s.Jobs, r.viewOf(ctx, j, attempt, own))
	}
	s.Jobs = append(s.Jobs, r.leftBy(ctx, jobs, pods)...)
	return nil
}

// leftBy returns the Jobs that no longer exist and whose pods may still write under a name that other attempts have, too. A
// deletion of a Job does not wait for its pod, which on a lost node has no end.
func (r *Reconciler) leftBy(ctx context.Context, jobs []*batchv1.Job, pods []*corev1.Pod) []planner.Job {
	var left []planner.Job
	for _, pod := range pods {
		exists := slices.ContainsFunc(jobs, func(j *batchv1.Job) bool { return metav1.IsControlledBy(pod, j) })
		if exists || !mayWrite(pod) {
			continue
		}
		j := jobOfPod(pod)
		attempt, err := attemptOf(j)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Ignored a pod without the annotations of an attempt", "pod", klog.KObj(pod))
			continue
		}
		view := r.viewOf(ctx, j, attempt, []*corev1.Pod{pod})
		view.Deleting = true
		left = append(left, view)
	}
	return left
}

// mayWrite is true of a pod that may still write under a name that other attempts have, too.
func mayWrite(pod *corev1.Pod) bool {
	return resources.SharesKey(&pod.Spec) && job.NewestFinished(jobOfPod(pod), []*corev1.Pod{pod}) == nil
}

// jobOfPod stands for the Job of a pod, which may no longer exist. What others have added to the pod is not of the Job.
func jobOfPod(pod *corev1.Pod) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Name: pod.Name, Namespace: pod.Namespace, Annotations: pod.Annotations, CreationTimestamp: pod.CreationTimestamp,
	}}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		j.Name = owner.Name
	}
	ofOthers := func(c corev1.Container) bool {
		request, err := agent.RequestIn(c.Args)
		return request == nil && err == nil
	}
	j.Spec.Template.Spec.InitContainers = slices.DeleteFunc(slices.Clone(pod.Spec.InitContainers), ofOthers)
	j.Spec.Template.Spec.Containers = slices.DeleteFunc(slices.Clone(pod.Spec.Containers), ofOthers)
	return j
}

// runs is true if the status says that an attempt is under way.
func runs(s *v1beta2.BackupStatus) bool {
	return s.Attempts > 0 && s.StartTime != nil && s.CompletionTime == nil && s.LastScheduleTime != nil
}

// shows is true if the Job of the attempt that runs is among jobs.
func shows(jobs []*batchv1.Job, s *v1beta2.BackupStatus) bool {
	return slices.ContainsFunc(jobs, func(j *batchv1.Job) bool {
		a, err := attemptOf(j)
		return err == nil && a.Number == s.Attempts && a.ScheduledTime.Equal(s.LastScheduleTime.Time)
	})
}

func (r *Reconciler) liveJobs(ctx context.Context, b *v1beta2.EtcdBackup) ([]*batchv1.Job, error) {
	list, err := r.Objects.ListJobs(ctx, b.Namespace, b.UID)
	if err != nil {
		return nil, fmt.Errorf("list Jobs: %w", err)
	}
	jobs := make([]*batchv1.Job, 0, len(list))
	for i := range list {
		jobs = append(jobs, &list[i])
	}
	return jobs, nil
}

// jobs looks at the Jobs, and deletes them.
func (r *Reconciler) jobs() job.Observer {
	return job.Observer{Objects: r.Objects, Progress: r.Progress}
}

func attemptOf(j *batchv1.Job) (planner.Attempt, error) {
	scheduled, err := time.Parse(time.RFC3339, j.Annotations[resources.AnnotationScheduledTime])
	if err != nil {
		return planner.Attempt{}, fmt.Errorf("annotation %s: %w", resources.AnnotationScheduledTime, err)
	}
	number, err := strconv.ParseInt(j.Annotations[resources.AnnotationAttempt], 10, 32)
	if err != nil {
		return planner.Attempt{}, fmt.Errorf("annotation %s: %w", resources.AnnotationAttempt, err)
	}
	return planner.Attempt{ScheduledTime: scheduled, Number: int32(number)}, nil
}
