// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager runs processes of the controller: the real Reconciler with the real
// planner. Each process has caches, a gate and a queue of its own, over ports to the
// simulated Kubernetes (ports.go) and etcd (ports_etcd.go, ports_members.go).
//
// Every call goes through call.go, where it can fail, be late, or end the process (faults.go). What
// a reconcile has seen is kept in an Observation, by which the checks judge it.
//
// It may import clients and what is below. Start at manager.go.
package manager
