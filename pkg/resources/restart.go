// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// supersede notes on a pod which container is about to be replaced by one with
// another image, and the image of that container. If the kubelet has not replaced it
// since the note before, the older note stays: it says what the container was made from.
func supersede(pod *corev1.Pod, image string) {
	id := containerID(pod)
	if noted, _, _ := strings.Cut(pod.Annotations[AnnotationSuperseded], " "); noted == id && id != "" {
		return
	}
	if id == "" {
		delete(pod.Annotations, AnnotationSuperseded)
		return
	}
	pod.Annotations[AnnotationSuperseded] = id + " " + image
}

// IsSettled is true if the container of a member is the one that the pod asks for. After
// a change of the image etcd may respond again before the kubelet has said that the
// container was restarted; the pod is called ready meanwhile because of the one before.
func IsSettled(pod *corev1.Pod) bool {
	if seen := pod.Status.ObservedGeneration; seen != 0 && seen < pod.Generation {
		return false
	}
	id, image, noted := strings.Cut(pod.Annotations[AnnotationSuperseded], " ")
	return !noted || id != containerID(pod) || image == imageOf(pod)
}

// IsFirstOfVersion is true for the first pod with its version of etcd, as long as no container of etcd was created in it:
// the data is of the version before.
func IsFirstOfVersion(pod *corev1.Pod) bool {
	if pod.Annotations[AnnotationVersionBefore] == "" {
		return false
	}
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if s.Name == ContainerName && (s.ContainerID != "" || s.RestartCount > 0 || s.State.Waiting == nil || s.LastTerminationState.Terminated != nil) {
			return false
		}
	}
	return true
}

// containerID returns the ID of the container of etcd that the kubelet reported last.
func containerID(pod *corev1.Pod) string {
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.Name == ContainerName {
			return s.ContainerID
		}
	}
	return ""
}

// imageOf returns the image that the pod asks for.
func imageOf(pod *corev1.Pod) string { return etcdContainer(pod).Image }

// etcdContainer returns the container of etcd; an empty one if there is none.
func etcdContainer(pod *corev1.Pod) *corev1.Container {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == ContainerName {
			return c
		}
	}
	return &corev1.Container{}
}
