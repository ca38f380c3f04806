// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cgroup makes and removes the cgroup below which a node's pods run. It
// knows both arrangements: one hierarchy per controller (version 1, also when
// version 2 is mounted beside it) and the single hierarchy of version 2.
package cgroup
