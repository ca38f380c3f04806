// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"slices"

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
// although their Job was deleted.
func RunningPruners(jobs []*batchv1.Job, pods []*corev1.Pod) []planner.Pruner {
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
		if !slices.ContainsFunc(running, func(p planner.Pruner) bool { return p.Job == owner.Name }) {
			running = append(running, planner.Pruner{Job: owner.Name, Request: request})
		}
	}
	return running
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
