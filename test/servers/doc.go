// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package servers starts programs on loopback for tests and benchmarks: etcd, the
// kube-apiserver and our API server, with certificates that it makes itself. A program that it
// started ends by its own pid, and the kernel ends it if the process that started it dies.
package servers
