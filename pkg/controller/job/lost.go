// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	planner "github.com/etcd-operator/etcd-operator/pkg/planner/job"
)

// reportGrace is how long a kubelet may take to report the end of a pod, after the grace period of the pod.
const reportGrace = time.Minute

// LostNodeOf returns the lost node that the pods of a Job were on; nil while one of them may still report its end.
// Kubernetes ends no Job while a pod of it terminates, and a pod on a lost node terminates until the node returns or a
// user deletes the pod with --force. The deletion timestamp of a pod is the end of its grace period.
func LostNodeOf(job *batchv1.Job, pods []*corev1.Pod, now time.Time) *planner.LostNode {
	if NewestFinished(job, pods) != nil || Ended(job) != nil {
		return nil
	}
	var lost *planner.LostNode
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil {
			return nil
		}
		since := pod.DeletionTimestamp.Add(reportGrace)
		if now.Before(since) {
			return nil
		}
		if lost == nil || since.After(lost.Since) {
			lost = &planner.LostNode{Since: since, Message: Shorten(fmt.Sprintf("node %s does not report the end of pod %s, which Kubernetes deletes", pod.Spec.NodeName, pod.Name))}
		}
	}
	return lost
}
