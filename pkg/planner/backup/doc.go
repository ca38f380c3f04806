// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backup decides what happens to one EtcdBackup:
//   - when a backup is due.
//   - which attempt begins, and when a failed attempt is repeated.
//   - which stored backups expire, and which of them a restore or a user keeps (held.go). A Job that began before does
//     not keep them: it is ended, and another attempt follows.
//   - when a single EtcdBackup is deleted after its TTL (expire.go).
//   - what the status reports.
//
// It is pure: the same observation always gives the same plan, and the time is part of
// the observation. It may import the API types, Kubernetes' types and the parser of cron
// schedules, and package agent for the URIs of backups.
//
// The status of the object is the only memory. An attempt is a Job. The name of the Job
// follows from the object, the scheduled time and the number of the attempt, so that
// repeated decisions create one Job. The status records the outcome of a Job before the
// Job is removed. Start at Decide in plan.go.
package backup
