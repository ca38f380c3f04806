// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulation runs the real controller (pkg/controller/cluster with the real
// planner) in a simulated world and looks for broken rules after every step.
//
// World is that world: objects.go and cache.go are the Kubernetes API and what a
// controller sees of it, kubelet.go and nodes.go run pods, etcd_*.go is etcd down to
// its log, clients.go writes, and call.go carries out, delays or cuts the controller's
// calls. checks*.go are the rules of docs/architecture.md, settle.go is what a cluster
// must come to, and rollback.go brings our own API back from an earlier time.
//
// There are three ways to play it. A Schedule (schedule.go) is a random story with
// faults. A phase (phases.go, sweep.go) is one thing that is done to a cluster, played
// once for every call of the controller that can be cut. A Variant (variant.go) is a
// controller with a known mistake, which must be noticed.
//
// Start at run.go.
package simulation
