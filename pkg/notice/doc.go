// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notice is what the controller says to the launcher in a pod whose member was added:
// the initial cluster, signed. The kubelet writes the same to a file of the pod, up to a second
// later. The package imports nothing but the standard library, because the launcher is copied
// into every pod. Start at notice.go.
package notice
