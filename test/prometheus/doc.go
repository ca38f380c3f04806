// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command dashboards evaluates every query of every dashboard of artifacts/monitoring on a
// Prometheus that watched an EtcdCluster through an upgrade, a backup and a loss of its
// quorum. With -record it keeps the series, in testdata/run.txt. The test of this package
// evaluates the same queries and all rules on that file, with the engine of Prometheus and
// without a Kubernetes.
//
// This is a module of its own, because it pins Prometheus, server and libraries. TestDashboards
// in test/e2e builds and starts the server. The configuration of the server comes from the
// module in podmonitors.
package main
