// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package harness connects the end-to-end tests and the measurements to a Kubernetes, the
// local one (`make up`) or any other. It has clients and kubectl, live views of objects to
// wait on, and a writer that counts what was acknowledged. It reaches etcd members one by one
// at the addresses of their pods, and the processes behind containers. It knows nothing of
// testing and nothing of the controller's inside. Start at environment.go.
package harness
