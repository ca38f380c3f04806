// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restore decides what happens to one EtcdRestore:
//   - whether the cluster has carried it out before (repeat.go).
//   - whether the loss lasts for which the controller created it (automatic.go).
//   - when its backup is read and verified: not while a Job runs that may delete it (verify.go), and how often that is
//     tried (retry.go).
//   - whether the cluster can take the backup.
//   - when the cluster gets the request to continue from the backup.
//   - what the status reports.
//
// It is pure: the same observation always gives the same plan, and the time is part of
// the observation.
//
// A Job first reads the backup and verifies it against its target. Nothing else has
// changed by then. The Job stays, with its result in the termination message of its pod,
// until the cluster has the request, which holds all that is known of the backup.
//
// The request is a recovery in the status of the EtcdCluster. pkg/planner/cluster carries
// the recovery out beside the existing members. The ID of the recovery is the UID of the
// EtcdRestore, so that repeated decisions make one request. The outcome is read from the
// recovery in that status. Start at Decide in plan.go.
package restore
