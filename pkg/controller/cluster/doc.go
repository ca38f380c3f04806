// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster brings an EtcdCluster to its desired state: it observes (observe.go), has
// pkg/planner/cluster decide, acts (act.go) and writes one status (status.go). Between two
// runs it remembers only which of its own writes its cache has not shown yet. The outside
// world is behind the small interfaces of ports.go, so that the simulation can run this
// very code. Start at reconcile.go.
package cluster
