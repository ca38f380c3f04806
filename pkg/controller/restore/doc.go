// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restore acts on EtcdRestores: it observes, lets pkg/planner/restore decide, makes
// and removes the Jobs that look at backups, asks clusters to go on from them, and writes
// the status. It moves no data and sees no credentials. What is done with the cluster is
// done by pkg/controller/cluster, which reads the request in the status of the EtcdCluster.
//
// Nothing is remembered between two reconciles but which own writes the caches have not
// shown yet (the gate), so a crash between any two calls is only a new observation. Start
// at reconcile.go.
package restore
