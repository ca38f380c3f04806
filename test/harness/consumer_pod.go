// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// restrictedPod returns a pod of a program that uses an EtcdCluster; the Pod Security Standard
// "restricted" allows it. It has the files of the program, and the certificate if there is one.
func restrictedPod(o ConsumerOptions, container corev1.Container, files corev1.VolumeSource) *corev1.Pod {
	volumes := []corev1.Volume{
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "files", VolumeSource: files},
	}
	container.VolumeMounts = []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}, {Name: "files", MountPath: consumerFiles}}
	if o.Secret != "" {
		volumes = append(volumes, corev1.Volume{Name: "etcd", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: o.Secret}}})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "etcd", MountPath: "/etc/etcd"})
	}
	container.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: ptr.To(false),
			EnableServiceLinks:           ptr.To(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](consumerUser), FSGroup: ptr.To[int64](consumerUser),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Volumes:    volumes,
			Containers: []corev1.Container{container},
		},
	}
}

// runPod creates a pod and returns its address when it is ready.
func (e *Environment) runPod(ctx context.Context, pod *corev1.Pod) (string, error) {
	if _, err := e.Kube.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("create pod %s: %w", pod.Name, err)
	}
	view, err := follow(ctx, selected(e.Kube.CoreV1().Pods(pod.Namespace), "", "metadata.name="+pod.Name), &corev1.Pod{})
	if err != nil {
		return "", err
	}
	defer view.Close()
	address := ""
	limited, cancel := context.WithTimeoutCause(ctx, consumerStart, fmt.Errorf("not within %v", consumerStart))
	defer cancel()
	err = view.Await(limited, func(pods []*corev1.Pod) bool {
		if len(pods) != 1 || !IsPodReady(pods[0]) {
			return false
		}
		address = pods[0].Status.PodIP
		return true
	})
	if err != nil {
		return "", fmt.Errorf("wait until pod %s is ready: %w", pod.Name, err)
	}
	return address, nil
}
