// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node runs the nodes of the local cluster. A node is a set of Linux
// namespaces with its own network, mounts, processes, host name and IPC; in it run
// an init (this program again), containerd, the kubelet and kube-proxy.
//
//	up ──clone──▶ init (process 1 of the node)
//	               ├── containerd ── shims ── pods
//	               ├── kube-proxy
//	               └── kubelet
//
// The kernel ends every process of the node when its init ends, so killing the
// init is what pulling the plug is to a real machine. What lies under /var/lib and
// /var/log is kept on the node's own "disk", a directory, and is there again after
// the next boot; /run is not.
package node
