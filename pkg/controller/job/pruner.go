// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	planner "github.com/etcd-operator/etcd-operator/pkg/planner/job"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// PrunerOf returns what a Job deletes; nil if it deletes no backup. The template of a Job cannot be changed, so it says
// more than an annotation.
func PrunerOf(job *batchv1.Job) *planner.Pruner {
	request, _ := resources.PruningOf(&job.Spec.Template.Spec)
	if request == nil {
		return nil
	}
	return &planner.Pruner{Job: job.Name, Request: request}
}

// RunningPruners returns what may still delete backups: Jobs of EtcdBackups that have not ended, and pods that have not,
// although their Job was deleted. Nothing but a person ends the wait for a pod on a lost node, so such a pod is named.
func RunningPruners(jobs []*batchv1.Job, pods []*corev1.Pod, now time.Time) []planner.Pruner {
	var running []planner.Pruner
	for _, job := range jobs {
		if p := PrunerOf(job); p != nil && Ended(job) == nil && NewestFinished(job, PodsOf(job, pods)) == nil {
			running = append(running, *p)
		}
	}
	for _, pod := range pods {
		request, container := resources.PruningOf(&pod.Spec)
		owner := metav1.GetControllerOfNoCopy(pod)
		if request == nil || owner == nil || hasEnded(pod, container) {
			continue
		}
		i := slices.IndexFunc(running, func(p planner.Pruner) bool { return p.Job == owner.Name })
		if i < 0 {
			i, running = len(running), append(running, planner.Pruner{Job: owner.Name, Request: request})
		}
		if running[i].Overdue == "" && isEndOverdue(pod, now) {
			running[i].Overdue, running[i].Node = pod.Name, pod.Spec.NodeName
		}
	}
	return running
}

// isEndOverdue is true if Kubernetes deletes a pod, and its kubelet has had its time to report the end.
func isEndOverdue(pod *corev1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp != nil && !now.Before(pod.DeletionTimestamp.Add(reportGrace))
}

// hasEnded is true if a container of a pod cannot run any more: it is never restarted, whatever runs beside it.
func hasEnded(pod *corev1.Pod, container string) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	return slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(c corev1.ContainerStatus) bool {
		return c.Name == container && c.State.Terminated != nil
	})
}
