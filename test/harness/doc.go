// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package harness is how the end-to-end tests and the measurements reach the local
// Kubernetes: its clients and kubectl, live views of objects to wait on, etcd
// members asked one by one at their pods' addresses, a writer that keeps count of
// what was acknowledged, and the processes behind containers. It knows nothing of
// testing and nothing of the controller's inside. Start at environment.go.
package harness
