// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// agentContainer returns a container that runs one command of the agent. The error
// matches agent.ErrInvalid.
func agentContainer(name, image string, command agent.Command, request *agent.Request, mounts []corev1.VolumeMount) (*corev1.Container, error) {
	args, err := request.Args(command)
	if err != nil {
		return nil, err
	}
	return newAgentContainer(name, image, args, mounts), nil
}

func newAgentContainer(name, image string, args []string, mounts []corev1.VolumeMount) *corev1.Container {
	return &corev1.Container{
		Name:            name,
		Image:           image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{agent.Program},
		Args:            args,
		// The collector keeps the agent well below its limit, whatever it moves.
		Env: []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: "200MiB"}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
		},
		VolumeMounts:    mounts,
		SecurityContext: containerSecurityContext(&v1beta2.PodPolicy{}),
	}
}
