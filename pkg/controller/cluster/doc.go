// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster carries an EtcdCluster from what it is to what it shall be: it
// observes (observe.go), lets pkg/planner/cluster decide, acts (act.go) and writes
// one status (status.go). It remembers nothing between two runs but which of its
// own writes its cache has not shown yet. The outside world is behind the small
// interfaces of ports.go, so that the simulation can run this very code. Start at
// reconcile.go.
package cluster
