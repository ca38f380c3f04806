// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

// Reasons of the events on an EtcdBackup. They are part of the API: alerts match them.
const (
	EventStarted   = "BackupStarted"
	EventSucceeded = "BackupSucceeded"
	EventFailed    = "BackupFailed"
	// EventPruneFailed: the backup is stored, and expired backups could not be deleted. The next backup tries again. Check the rights of the credentials to list and delete.
	EventPruneFailed = "PruneFailed"
	// EventExpired: spec.ttl of the EtcdBackup is over, and the controller has deleted the object. What it has stored stays in the store, at the URI in the message.
	EventExpired = "BackupExpired"
)

// Reasons of the events on an EtcdCluster.
const (
	EventScheduleCreated = "BackupScheduleCreated"
	EventScheduleChanged = "BackupScheduleChanged"
)
