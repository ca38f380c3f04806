// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs etcd, the API server, the controller manager and the
// scheduler of the local cluster as plain processes in one network namespace.
package controlplane
