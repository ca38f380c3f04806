// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes names the releases of Kubernetes that the local cluster can run.
package kubernetes
