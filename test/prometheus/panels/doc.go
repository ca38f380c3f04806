// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package panels evaluates the queries of the dashboards on a run: a time in which an
// EtcdCluster was upgraded, backed up, and lost its quorum. It reads the dashboards
// (read.go), knows which queries have data at which event (events.go), and compares
// (check.go). It does not know whether a Prometheus or a fixture has the data. It may
// import libraries of Prometheus and nothing of the operator. Start at check.go.
package panels
