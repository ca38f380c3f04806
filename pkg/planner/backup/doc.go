// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backup decides what is done about one EtcdBackup: when a backup is due,
// which attempt is begun, when a failed one is tried again, which stored backups are
// given up, and what the status says of all that. It is pure: the same observation
// always gives the same plan, and the time is part of the observation. It may import
// the API types, Kubernetes' types and the parser of cron schedules.
//
// The status of the object is the only memory. An attempt is a Job whose name follows
// from the object, the time for which the backup was due and the number of the
// attempt, so that it is made once however often its making is decided. What came of
// a Job is written to the status before the Job is removed. Start at Decide in
// plan.go.
package backup
