// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
)

// Reasons of conditions while nothing is wrong.
const (
	// ReasonStored: the newest backup is stored and verified. The good state.
	ReasonStored = "Stored"
	// ReasonStoredUnconfirmed: the newest backup is stored and verified, but no quorum confirmed that the member had every write. The newest writes may be missing. Bring back a quorum, and make another backup.
	ReasonStoredUnconfirmed = "StoredUnconfirmed"
	// ReasonStoredDataDiffers: the newest backup is stored and verified, but etcd reported that the data of its members differed (alarm CORRUPT), so it may have the wrong data. No expired backup is deleted. Replace the member that differs as docs/how-to/corrupt-member.md says, and disarm the alarm. Ends with the next backup after that.
	ReasonStoredDataDiffers = "StoredDataDiffers"
	// ReasonNotYet: no attempt has ended yet. The condition Progressing says what the backup waits for.
	ReasonNotYet = "NotYet"
	// ReasonNoneDueYet: no backup has been due yet. The good state before the first scheduled time.
	ReasonNoneDueYet = "NoneDueYet"
	// ReasonDue: the backup is about to begin. Ends by itself within seconds.
	ReasonDue = "Due"
	// ReasonRunning: an attempt runs. Ends with that attempt.
	ReasonRunning = "Running"
	// ReasonScheduled: the next backup follows at the scheduled time that the message tells.
	ReasonScheduled = "Scheduled"
	// ReasonSuspended: the field spec.backupPolicy.suspend is true. Ends when you set it to false.
	ReasonSuspended = "Suspended"
	// ReasonPruned: the store holds no expired backup. The good state.
	ReasonPruned = "Pruned"
)

// Reasons for which an EtcdBackup stays after its TTL.
const (
	// ReasonHeld: the field spec.hold is true. Ends when you set it to false.
	ReasonHeld = "Held"
	// ReasonNeededByRestore: an EtcdRestore that has not ended names the EtcdBackup, or has it as its pre-restore backup. Ends with that restore.
	ReasonNeededByRestore = "NeededByRestore"
	// ReasonLastProven: no newer verified backup of the cluster exists. Ends after a newer one is stored. To delete the EtcdBackup at once, delete it yourself.
	ReasonLastProven = "LastProven"
)

// Reasons to wait. The backup continues by itself after the cause has ended.
const (
	// ReasonAnotherBackupRuns: another backup of the same EtcdCluster runs. Ends with that backup.
	ReasonAnotherBackupRuns = "AnotherBackupRuns"
	// ReasonTooManyBackups: as many backups run as the controller allows. Ends when one of them ends.
	ReasonTooManyBackups = "TooManyBackups"
	// ReasonClusterNotFound: the EtcdCluster does not exist. Ends when it does.
	ReasonClusterNotFound = "ClusterNotFound"
	// ReasonNoMemberRuns: no pod of a member runs, so there is nothing to back up. Ends when one runs.
	ReasonNoMemberRuns = "NoMemberRuns"
	// ReasonInvalidRequest: the spec cannot be made into a request to the agent. Ends when you correct it.
	ReasonInvalidRequest = string(agent.ClassRequest)
	// ReasonInvalidSchedule: the schedule or the time zone in spec.backupPolicy cannot be read. Such a value was stored by an API server that did not check it. Ends when you correct it.
	ReasonInvalidSchedule = "InvalidSchedule"
	// ReasonJobNotEnding: the pod of the Job runs for longer than a transfer takes, and its agent does not respond. Its node may be lost, or its disk may not respond. Or a pod without a Job may write under the name of the next attempt. Do what the message says, which also tells whether another attempt follows. Ends with that Job or pod, or when the agent responds.
	ReasonJobNotEnding = "JobNotEnding"
	// ReasonRejected: Kubernetes rejects the Job, its pod or an object that it needs: a quota is used up, or a policy forbids it. Ends by itself after Kubernetes accepts it.
	ReasonRejected = job.ReasonRejected
)

// Reasons of failures that the controller finds itself. Others come from the agent.
const (
	// ReasonNotStarted: Kubernetes does not start the pod of a Job, or the next container in it, and the message says why. After ten minutes the attempt has failed.
	ReasonNotStarted = job.ReasonNotStarted
	// ReasonJobLost: the Job no longer exists, or ended without an outcome. The next attempt follows by itself.
	ReasonJobLost = job.ReasonJobLost
	// ReasonNodeLost: the node of the pod does not report the end of the pod, which Kubernetes deletes. The next attempt follows by itself, unless the pod may still write under the same name: then make sure that the node is off, and delete the pod with --force.
	ReasonNodeLost = job.ReasonNodeLost
	// ReasonRestoreBegan: an EtcdRestore was created or a hold was set while the backup ran, and the retention of that backup could delete what the EtcdRestore reads or the hold keeps. The next attempt keeps it and follows by itself. Until it has ended, the condition Succeeded stays as it was.
	ReasonRestoreBegan = "RestoreBegan"
	// ReasonRetryScheduled: the last attempt failed, and the next one follows at the time that the message tells.
	ReasonRetryScheduled = "RetryScheduled"
	// ReasonGaveUp: every attempt failed. Remove the cause, then change the spec or create another EtcdBackup.
	ReasonGaveUp = "GaveUp"
	// ReasonPruneFailed: the backup is stored, and expired backups could not be deleted. The next backup tries again.
	ReasonPruneFailed = "PruneFailed"
)
