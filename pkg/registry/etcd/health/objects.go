// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

func podOf(p *corev1.Pod) *v1beta2.MemberPod {
	if p == nil {
		return nil
	}
	pod := &v1beta2.MemberPod{
		Name:        p.Name,
		Phase:       p.Status.Phase,
		Terminating: p.DeletionTimestamp != nil,
		Node:        p.Spec.NodeName,
		Address:     p.Status.PodIP,
	}
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady {
			pod.Ready = c.Status == corev1.ConditionTrue
		}
	}
	if reason, message, is := resources.Unscheduled(p); is {
		pod.Message = reason + ": " + message
	}
	for i := range p.Status.ContainerStatuses {
		s := &p.Status.ContainerStatuses[i]
		if s.Name != resources.ContainerName {
			continue
		}
		pod.Restarts = s.RestartCount
		switch {
		case s.State.Waiting != nil:
			pod.Message = describeState(s.State.Waiting.Reason, s.State.Waiting.Message)
		case s.State.Terminated != nil:
			pod.Message = fmt.Sprintf("etcd ended with code %d: %s", s.State.Terminated.ExitCode,
				describeState(s.State.Terminated.Reason, s.State.Terminated.Message))
		}
	}
	if p.Status.Phase == corev1.PodFailed && pod.Message == "" {
		pod.Message = describeState(p.Status.Reason, p.Status.Message)
	}
	return pod
}

// isRunning is true if etcd runs in the pod, as far as Kubernetes knows.
func isRunning(p *corev1.Pod) bool {
	if p == nil {
		return false
	}
	for i := range p.Status.ContainerStatuses {
		if s := &p.Status.ContainerStatuses[i]; s.Name == resources.ContainerName {
			return s.State.Running != nil
		}
	}
	return false
}

func describeState(reason, message string) string {
	switch {
	case message == "":
		return reason
	case reason == "":
		return message
	default:
		return reason + ": " + message
	}
}

func pvcOf(c *corev1.PersistentVolumeClaim) *v1beta2.MemberPVC {
	if c == nil {
		return nil
	}
	pvc := &v1beta2.MemberPVC{
		Name:        c.Name,
		Phase:       c.Status.Phase,
		Volume:      c.Spec.VolumeName,
		Terminating: c.DeletionTimestamp != nil,
	}
	if capacity, ok := c.Status.Capacity[corev1.ResourceStorage]; ok {
		pvc.Capacity = capacity.String()
	}
	return pvc
}
