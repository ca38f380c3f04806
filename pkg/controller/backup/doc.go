// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backup acts on EtcdBackups: it observes, has pkg/planner/backup decide, creates
// and deletes Jobs and writes the status. The Jobs move the data. They run the agent in the
// namespace of the cluster and mount what they need there. The controller sees no
// credentials and no data, only the result that the agent leaves in its termination
// message.
//
// Between two reconciles the package remembers only which backups wait to start
// (places.go) and which own writes the caches have not shown yet (the gate). So a crash
// between any two calls only leads to a new observation. A second reconciler, in
// cluster.go, keeps the EtcdBackup that spec.backup of a cluster asks for. It is the only
// author of status.lastBackup and of the condition BackupHealthy of clusters. Start at
// reconcile.go.
package backup
