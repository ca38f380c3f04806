// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

// ObjectsMetadata is put on every object that the controller makes for a cluster.
type ObjectsMetadata struct {
	// labels of pods, PVCs, Services, Secrets, the ConfigMap and the PodDisruptionBudget, such as those
	// that a policy of the Kubernetes cluster requires: at most 32. A change restarts no member. A
	// label that is removed here stays on the objects that exist. Rejected are "app", keys that begin with
	// "etcd_", and keys of etcd.database.coreos.com, kubernetes.io, k8s.io, argoproj.io, fluxcd.io and helm.sh, but for
	// those of app.kubernetes.io without instance and managed-by. Rejected are also keys of spec.pod.labels and of the labels of a Service.
	// +optional
	Labels map[string]string `json:"labels,omitempty" protobuf:"bytes,1,rep,name=labels"`
}
