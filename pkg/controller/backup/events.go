// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

// Reasons of the events on an EtcdBackup. They are part of the API: alerts match them.
const (
	EventStarted     = "BackupStarted"
	EventSucceeded   = "BackupSucceeded"
	EventFailed      = "BackupFailed"
	EventPruneFailed = "PruneFailed"
)

// Reasons of the events on an EtcdCluster.
const (
	EventScheduleCreated = "BackupScheduleCreated"
	EventScheduleChanged = "BackupScheduleChanged"
)
