// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import corev1 "k8s.io/api/core/v1"

// JobPolicy says where and how the pods of Jobs run that move backups. What they mount,
// what they run, their user and their security context stay the controller's.
type JobPolicy struct {
	// labels added to the pods. "app", keys that begin with "etcd_", and keys of Jobs and
	// of cloud identities are rejected.
	Labels map[string]string `json:"labels,omitempty" protobuf:"bytes,1,rep,name=labels"`
	// annotations added to the pods, such as those that keep the proxy of a service mesh
	// out. Those of the controller, of security profiles and of cloud identities are rejected.
	Annotations map[string]string `json:"annotations,omitempty" protobuf:"bytes,2,rep,name=annotations"`
	// nodeSelector of the pods.
	NodeSelector map[string]string `json:"nodeSelector,omitempty" protobuf:"bytes,3,rep,name=nodeSelector"`
	// tolerations of the pods, beside those of the cluster.
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty" protobuf:"bytes,4,rep,name=tolerations"`
	// affinity of the pods.
	Affinity *corev1.Affinity `json:"affinity,omitempty" protobuf:"bytes,5,opt,name=affinity"`
	// priorityClassName of the pods.
	PriorityClassName string `json:"priorityClassName,omitempty" protobuf:"bytes,6,opt,name=priorityClassName"`
	// imagePullSecrets of the pods, beside those of the cluster.
	// +listType=atomic
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty" protobuf:"bytes,7,rep,name=imagePullSecrets"`
	// env of the containers that talk to the store: HTTP_PROXY, HTTPS_PROXY and NO_PROXY,
	// in upper or lower case, each with a value and without valueFrom. A value may hold no
	// password.
	// +listType=atomic
	Env []corev1.EnvVar `json:"env,omitempty" protobuf:"bytes,8,rep,name=env"`
	// resources of each container, as far as they differ from the defaults: requests of
	// 50m cpu and 128Mi memory, and a memory limit of 256Mi. A memory limit must be at
	// least that.
	Resources corev1.ResourceRequirements `json:"resources,omitempty" protobuf:"bytes,9,opt,name=resources"`
}
