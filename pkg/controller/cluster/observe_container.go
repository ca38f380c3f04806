// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	corev1 "k8s.io/api/core/v1"

	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// etcdStatus returns the status of the container of etcd; nil while the kubelet has reported none.
func etcdStatus(p *corev1.Pod) *corev1.ContainerStatus {
	for i := range p.Status.ContainerStatuses {
		if cs := &p.Status.ContainerStatuses[i]; cs.Name == resources.ContainerName {
			return cs
		}
	}
	return nil
}

// containerWaiting says why a container does not run, in the words of Kubernetes: that of etcd, or the
// init container that it waits for. Empty if Kubernetes says nothing, or only that it creates the container.
func containerWaiting(p *corev1.Pod) string {
	var statuses []*corev1.ContainerStatus
	for i := range p.Status.InitContainerStatuses {
		statuses = append(statuses, &p.Status.InitContainerStatuses[i])
	}
	if cs := etcdStatus(p); cs != nil {
		statuses = append(statuses, cs)
	}
	for _, cs := range statuses {
		w := cs.State.Waiting
		switch {
		case w == nil, w.Reason == "ContainerCreating", w.Reason == "PodInitializing":
		case planner.IsImageWait(w.Reason):
			return w.Reason + ": " + cs.Image
		case w.Reason == "CreateContainerConfigError":
			return w.Reason + ": " + w.Message
		default:
			return w.Reason // its message changes with each attempt
		}
	}
	return ""
}
