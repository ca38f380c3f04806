// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package job is the base of the reconcilers of EtcdBackups and EtcdRestores, whose data
// moves in Jobs that run the agent. It observes a Job and its pods (observe.go) and reads
// the result that the agent left (outcome.go). It finds out why Kubernetes creates no pod
// (rejected.go), notices pods on lost nodes (lost.go), and asks a running agent for its progress (progress.go). It finds
// the Jobs and pods that may still delete backups (pruner.go). Start at Observer in observe.go.
package job
