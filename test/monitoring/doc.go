// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring checks artifacts/monitoring against the programs: an alert on a
// metric that no program exports never fires, which goes unnoticed. promtool runs the alerts
// (scenarios_test.go) and the queries of the dashboards (dashboards_test.go) on samples.
// test/prometheus evaluates both on the series of a real run.
package monitoring
