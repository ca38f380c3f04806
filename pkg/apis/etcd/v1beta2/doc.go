// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +k8s:protobuf-gen=package
// +k8s:defaulter-gen=TypeMeta
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.coreos.database.etcd.v1beta2
// +groupName=etcd.database.coreos.com

// Package v1beta2 holds the types of etcd.database.coreos.com/v1beta2 and their
// defaults. Fields of the original etcd-operator keep their JSON names and their
// meaning; everything added is optional. It does no I/O and imports only
// Kubernetes API packages. Start at types_cluster.go.
package v1beta2 // import "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
