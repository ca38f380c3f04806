// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
)

// Reasons of conditions while nothing is wrong.
const (
	// ReasonVerifying: the backup is read and checked. Nothing has been changed. No action is needed.
	ReasonVerifying = "Verifying"
	// ReasonVerified: the backup was read and fits the cluster. The good state.
	ReasonVerified = "Verified"
	// ReasonRestoring: the cluster takes over the restored data. No action is needed.
	ReasonRestoring = "Restoring"
	// ReasonRestored: the cluster has committed a write with the restored data. The good state.
	ReasonRestored = "Restored"
	// ReasonMemberResponded: a member of the cluster has responded since the restore began, so a pre-restore backup stores its data. No action is needed.
	ReasonMemberResponded = "MemberResponded"
	// ReasonMemberMayRespond: no member has responded since the restore began, and the pre-restore backup began before that was certain. It waits for a member. If none can respond, suspend that EtcdBackup: the PVCs of the old members are kept.
	ReasonMemberMayRespond = "MemberMayRespond"
	// ReasonPreRestoreBackupSuspended: a user has suspended the EtcdBackup that stores the current data, so that no pre-restore backup is required. The PVCs of the old members are kept.
	ReasonPreRestoreBackupSuspended = "PreRestoreBackupSuspended"
	// ReasonNotYet: the restore has not come so far. The condition Progressing says what it does.
	ReasonNotYet = "NotYet"
)

// Reasons to wait. The restore continues by itself after the cause has ended.
const (
	// ReasonBackupNotFound: the EtcdBackup that the restore names does not exist, or has no good backup of the revision. Ends when it has.
	ReasonBackupNotFound = string(agent.ClassNotFound)
	// ReasonNoBackupYet: the EtcdBackup that the restore names has stored no good backup. Ends when it has.
	ReasonNoBackupYet = "NoBackupYet"
	// ReasonBackupMayBeDeleted: a Job of a backup that began before the EtcdRestore was created may delete the backup that is read. The controller ends that Job. Ends when the Job and its pods have ended.
	ReasonBackupMayBeDeleted = "BackupMayBeDeleted"
	// ReasonInvalidRequest: the spec of the restore, or of the EtcdBackup that it names, cannot be used. Ends when you correct it.
	ReasonInvalidRequest = string(agent.ClassRequest)
	// ReasonClusterNotFound: the EtcdCluster does not exist. Ends when it does. A restore whose backup tells the version creates it after some seconds.
	ReasonClusterNotFound = "ClusterNotFound"
	// ReasonClusterTerminating: the EtcdCluster is being deleted. Ends when it is deleted.
	ReasonClusterTerminating = "ClusterTerminating"
	// ReasonClusterNotObserved: the controller has not written the status of the EtcdCluster since that was created or brought back. Ends when it has.
	ReasonClusterNotObserved = "ClusterNotObserved"
	// ReasonClusterAwaitsVolumes: PVCs of an earlier cluster of the name exist, and the EtcdCluster has not served with them. Ends when it has, so that a pre-restore backup stores their data first.
	ReasonClusterAwaitsVolumes = "ClusterAwaitsVolumes"
	// ReasonClusterPaused: the field spec.paused of the EtcdCluster is true. Ends when you set it to false.
	ReasonClusterPaused = "ClusterPaused"
	// ReasonClusterHibernated: the field spec.size of the EtcdCluster is 0. Ends when you set it.
	ReasonClusterHibernated = "ClusterHibernated"
	// ReasonRecoveryUnderWay: another recovery of the EtcdCluster has not ended. Ends when it has.
	ReasonRecoveryUnderWay = "RecoveryUnderWay"
	// ReasonRecoveryNotReported: the status of the EtcdCluster does not show the recovery that the restore has requested, such as after it was brought back from an earlier time. Ends when it does. After two minutes the restore has failed.
	ReasonRecoveryNotReported = "RecoveryNotReported"
	// ReasonAnotherRestore: another EtcdRestore of the same cluster has not ended. Ends when it has.
	ReasonAnotherRestore = "AnotherRestore"
	// ReasonPreRestoreBackup: the data that the restore replaces is backed up first. Ends when that backup is stored.
	ReasonPreRestoreBackup = "PreRestoreBackup"
	// ReasonPreRestoreBackupFailed: the data that the restore replaces could not be backed up. Ends when the cause that the message names has ended.
	ReasonPreRestoreBackupFailed = "PreRestoreBackupFailed"
	// ReasonNoLocationForPreRestoreBackup: it is unknown where and for which recipients a pre-restore backup is to be encrypted. Ends when spec.backup of the cluster says so.
	ReasonNoLocationForPreRestoreBackup = "NoLocationForPreRestoreBackup"
	// ReasonWaitingForMember: no member responds, so a pre-restore backup is not possible. Ends when one responds. If none has responded since the restore began, it also ends by itself after some time.
	ReasonWaitingForMember = "WaitingForMember"
	// ReasonRecoveryMemberNotStarted: Kubernetes does not start the pod of the recovery member. The message is that of Kubernetes, such as an image that cannot be pulled or no node with room. Ends when the pod starts.
	ReasonRecoveryMemberNotStarted = "RecoveryMemberNotStarted"
	// ReasonRecoveryMemberLost: Kubernetes has ended the pod of the recovery member, such as by an eviction. The controller creates it again after a pause, or at once when spec.pod of the cluster changes.
	ReasonRecoveryMemberLost = "RecoveryMemberLost"
	// ReasonBackupUnreadable: an automatic restore cannot read its backup. It tries again, after at most ten minutes each time, for as long as the quorum is permanently lost. Ends when the cause that the message names has ended.
	ReasonBackupUnreadable = "BackupUnreadable"
	// ReasonAutomaticRestoreHeld: the controller created the restore for a permanent quorum loss, and that loss is not proven now, or spec.recovery.quorumLoss of the cluster is not Automatic any more. Ends when both are so again. If the cluster serves again, the restore ends instead.
	ReasonAutomaticRestoreHeld = "AutomaticRestoreHeld"
	// ReasonNotStarted: Kubernetes does not start the pod of a Job, or the next container in it, and the message says why. After ten minutes the attempt has failed.
	ReasonNotStarted = job.ReasonNotStarted
	// ReasonRejected: Kubernetes rejects the Job, its pod or an object that it needs: a quota is used up, or a policy forbids it. Ends by itself after Kubernetes accepts it.
	ReasonRejected = job.ReasonRejected
	// ReasonNodeLost: the node of the pod that reads the backup does not report the end of the pod. The next attempt follows by itself.
	ReasonNodeLost = job.ReasonNodeLost
	// ReasonJobTerminating: Kubernetes deletes the Job that has read the backup before. Another Job follows after that.
	ReasonJobTerminating = "JobTerminating"
)

// Reasons of a restore that has failed. Others come from the agent. Create another EtcdRestore
// after you have removed the cause.
const (
	// ReasonAbandoned: the restore was canceled, or the cluster could not take the data. The cluster has the data that it had before.
	ReasonAbandoned = "Abandoned"
	// ReasonClusterExists: the field spec.clusterTemplate asks for a new cluster, and a cluster of this name exists.
	ReasonClusterExists = "ClusterExists"
	// ReasonAlreadyRestored: the cluster has the data of an earlier EtcdRestore with this name and spec, and clients have written since then. Another spec, or the annotation etcd.database.coreos.com/restore-again, restores that data again.
	ReasonAlreadyRestored = "AlreadyRestored"
	// ReasonExpired: a restore in place has not begun to replace data within a day. The cluster has the data that it had before.
	ReasonExpired = "Expired"
	// ReasonClusterDeleted: the EtcdCluster was deleted during the restore.
	ReasonClusterDeleted = "ClusterDeleted"
	// ReasonRecoveryLost: the status of the EtcdCluster no longer holds the request of this restore. Check the data of the cluster before another restore.
	ReasonRecoveryLost = "RecoveryLost"
	// ReasonNotProved: the new members were lost before a committed write proved the restored data. The PVCs of the old members are kept. Remove the cause of the loss, then create another EtcdRestore.
	ReasonNotProved = "NotProved"
	// ReasonEncrypted: the backup is encrypted, and spec.decryption names no identities.
	ReasonEncrypted = "Encrypted"
	// ReasonUnsupported: the version of etcd cannot do what the spec asks for.
	ReasonUnsupported = string(agent.ClassUnsupported)
	// ReasonInternal: the agent did not report what it has verified.
	ReasonInternal = string(agent.ClassInternal)
)
