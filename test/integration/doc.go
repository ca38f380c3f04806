// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package integration tests the API server behind a real kube-apiserver. It needs
// the programs kube-apiserver, kube-controller-manager and kubectl, which it looks for in
// the directory that ETCD_OPERATOR_BIN names, or else where the local Kubernetes keeps
// them. It listens on loopback addresses only and ends every process that it started.
// Start at environment_test.go.
package integration
