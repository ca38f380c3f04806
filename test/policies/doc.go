// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policies evaluates the admission policies of artifacts with the admission plugin of the
// kube-apiserver, without a Kubernetes cluster. Start at plugin_test.go.
package policies
