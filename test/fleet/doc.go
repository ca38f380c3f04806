// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet stands in for the nodes under many clusters, so that one machine can run
// a controller for a thousand of them: a kubelet that starts no container and says that
// pods run, and one etcd that answers for all members at addresses of their own on
// loopback. The membership is modelled; there is no data and no consensus. Start at
// kubelet.go.
package fleet
