// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package orphanedpvc finds PVCs whose EtcdCluster does not exist, because the API lost the
// object or was restored from an earlier time. The controller keeps such PVCs and gives them
// to no other cluster; this package tells people about them, with events (report.go) and a
// metric (collector.go). PVCs that a retention policy keeps are not orphaned. It imports
// only the base of the reconcilers. Start at Reporter.
package orphanedpvc
