// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package task does what an agent's Request asks for: it moves snapshots between
// members of etcd, stores and data directories, and checks them on every way. It runs
// in a pod of the cluster's namespace, has no Kubernetes client, and knows stores only
// through pkg/objectstore. Every task can be killed at any time and started again: a
// later attempt finds what an earlier one has done, and what it left is never taken
// for a backup. Start at task.go.
package task
