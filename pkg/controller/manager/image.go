// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/component-base/version"
)

// containerName is the name of the controller's container in artifacts/install.
const containerName = "controller"

// agentImage returns the image that runs the agent: the image that --agent-image names;
// otherwise the image of this pod, so that an installation names its image once. Outside of
// a pod it is the image of this release.
func agentImage(ctx context.Context, pods typedcorev1.PodsGetter, o *Options) (string, error) {
	if o.AgentImage != "" {
		return o.AgentImage, nil
	}
	if o.podName == "" || o.podNamespace == "" {
		return imageRepository + ":" + version.Get().GitVersion, nil
	}
	pod, err := pods.Pods(o.podNamespace).Get(ctx, o.podName, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the image of pod %s/%s, which %s and %s name (set --agent-image to do without): %w",
			o.podNamespace, o.podName, envPodNamespace, envPodName, err)
	}
	return ownImage(pod)
}

// ownImage returns the image of the controller's container. A pod may have containers
// that others have injected.
func ownImage(pod *corev1.Pod) (string, error) {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == containerName || len(pod.Spec.Containers) == 1 {
			return c.Image, nil
		}
	}
	return "", fmt.Errorf("pod %s/%s has several containers and none is called %q: set --agent-image", pod.Namespace, pod.Name, containerName)
}
