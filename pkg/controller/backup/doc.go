// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backup acts on EtcdBackups: it observes, lets pkg/planner/backup decide,
// makes and removes Jobs and writes the status. Data moves in those Jobs, which run
// the agent in the namespace of the cluster and mount what they need there; the
// controller sees no credentials and no data, only the result that the agent leaves in
// its termination message.
//
// Nothing is remembered between two reconciles but who waits for a place (admission.go)
// and which own writes the caches have not shown yet (the gate), so a crash between any
// two calls is only a new observation. A second reconciler, in cluster.go, keeps the
// EtcdBackup that spec.backup of a cluster asks for, and is the only author of the
// status.lastBackup and of the condition BackupHealthy of clusters. Start at
// reconcile.go.
package backup
