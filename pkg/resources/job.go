// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// storeContainers are the containers of Jobs that talk to a store.
var storeContainers = []string{ContainerSave, ContainerFetch, ContainerComplete, ContainerVerify}

// useJobPolicy gives a Job what its user says of where and how its pod runs. What the
// controller has set stays: nothing is replaced, and neither commands, volumes, the service
// account nor a security context is touched.
func useJobPolicy(job *batchv1.Job, policy *v1beta2.JobPolicy) {
	if policy == nil {
		return
	}
	policy = policy.DeepCopy()
	template := &job.Spec.Template
	for key, value := range policy.Labels {
		setDefaultIn(&template.Labels, key, value)
	}
	for key, value := range policy.Annotations {
		setDefaultIn(&template.Annotations, key, value)
	}
	for key, value := range policy.NodeSelector {
		setDefaultIn(&template.Spec.NodeSelector, key, value)
	}
	template.Spec.Tolerations = append(template.Spec.Tolerations, policy.Tolerations...)
	for _, secret := range policy.ImagePullSecrets {
		if !slices.Contains(template.Spec.ImagePullSecrets, secret) {
			template.Spec.ImagePullSecrets = append(template.Spec.ImagePullSecrets, secret)
		}
	}
	template.Spec.Affinity = policy.Affinity
	template.Spec.PriorityClassName = policy.PriorityClassName
	for container := range containersOf(&template.Spec) {
		if slices.Contains(storeContainers, container.Name) {
			addEnv(container, policy.Env)
		}
		container.Resources = mergedResources(container.Resources, policy.Resources)
	}
}

// preferRecoveryNode prefers the node of the hidden recovery pod of a cluster, in addition to what the user prefers. That
// pod keeps the PVC that a restore reads mounted, and a PVC with the mode ReadWriteOnce can be mounted on one node at a
// time. The recovery may wait for this very backup. Another node stays possible: usually no such pod exists, and another
// PVC is mounted anywhere.
func preferRecoveryNode(pod *corev1.PodSpec, cluster string) {
	if pod.Affinity == nil {
		pod.Affinity = &corev1.Affinity{}
	}
	if pod.Affinity.PodAffinity == nil {
		pod.Affinity.PodAffinity = &corev1.PodAffinity{}
	}
	preferred := &pod.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	*preferred = append(*preferred, corev1.WeightedPodAffinityTerm{Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{
		LabelSelector: &metav1.LabelSelector{MatchLabels: RecoveryLabels(cluster)},
		TopologyKey:   corev1.LabelHostname,
	}})
}

// addEnv adds the variables of a user that a container does not have.
func addEnv(container *corev1.Container, env []corev1.EnvVar) {
	for _, variable := range literalEnv(env) {
		if !slices.ContainsFunc(container.Env, func(own corev1.EnvVar) bool { return own.Name == variable.Name }) {
			container.Env = append(container.Env, variable)
		}
	}
}

// mergedResources returns the own resources of a container with those that are wanted in
// their place. The memory limit never becomes lower, because the container needs it, and no
// request becomes larger than its limit.
func mergedResources(own, want corev1.ResourceRequirements) corev1.ResourceRequirements {
	merged := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for _, from := range []corev1.ResourceRequirements{own, want} {
		for name, quantity := range from.Requests {
			merged.Requests[name] = quantity
		}
		for name, quantity := range from.Limits {
			if least := merged.Limits[corev1.ResourceMemory]; name != corev1.ResourceMemory || quantity.Cmp(least) > 0 {
				merged.Limits[name] = quantity
			}
		}
	}
	for name, request := range merged.Requests {
		limit, limited := merged.Limits[name]
		if !limited || request.Cmp(limit) <= 0 {
			continue
		}
		if _, desired := want.Requests[name]; desired {
			merged.Limits[name] = request
		} else {
			merged.Requests[name] = limit
		}
	}
	return merged
}
