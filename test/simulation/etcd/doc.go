// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcd is a simulated etcd, down to the entries of its log. It has elections,
// replication, changes of the member list, learners, and data directories that survive their
// process. It knows what each version does differently.
//
// It knows Kubernetes by the interfaces network and container only, and tells an Observer what
// happens. It may import timeline and schedules. Start at world.go; a process begins in start.go.
package etcd
