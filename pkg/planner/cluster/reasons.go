// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/planner/recovery"
)

// Reason is one CamelCase word that says why the cluster waits, or why a condition has its
// status. It is part of the API: users and alerts compare it.
type Reason string

// Reasons of status.blockedBy: the controller waits. The conditions Ready, Reconciling,
// Stalled and Progressing repeat them. The same reasons of the API are ReasonPodRejected and
// ReasonOldMemberMayRun in package v1beta2.
const (
	// ReasonBackupEncrypted: no member and no PVC exist, and the last backup is encrypted, so the controller cannot restore it without a request. Ends with an EtcdRestore that sets spec.decryption.
	ReasonBackupEncrypted Reason = recovery.ReasonBackupEncrypted
	// ReasonBackupNotVerified: no member and no PVC exist, and the last backup was not verified. Ends with an EtcdRestore.
	ReasonBackupNotVerified Reason = recovery.ReasonBackupNotVerified
	// ReasonClusterIDMismatch: the members respond with the cluster ID of another etcd. Ends when they respond with the recorded one, or prove theirs if the record was lost.
	ReasonClusterIDMismatch Reason = "ClusterIDMismatch"
	// ReasonClusterVersionUndecided: etcd before 3.4 has not decided its cluster version, or no voter says it while members run different minor versions. Ends by itself some seconds after the bootstrap member, or a voter, serves.
	ReasonClusterVersionUndecided Reason = "ClusterVersionUndecided"
	// ReasonContainerCrashes: the container of etcd in a pod ends again and again. Ends when it stays up.
	ReasonContainerCrashes Reason = "ContainerCrashes"
	// ReasonContainerNotCreated: Kubernetes cannot create a container of a pod. Ends when the cause in the message is removed.
	ReasonContainerNotCreated Reason = "ContainerNotCreated"
	// ReasonDesiredSizeZero: spec.size is 0, and the cluster has not served yet. Ends when spec.size is set.
	ReasonDesiredSizeZero Reason = "DesiredSizeZero"
	// ReasonEtcdDenied: etcd's own authorization rejects the controller. Ends when the controller may act as root, or authorization is off.
	ReasonEtcdDenied Reason = diagnosis.ReasonEtcdDenied
	// ReasonEtcdUnhealthy: etcd rejects a membership change while not all members are connected. Ends by itself when they are.
	ReasonEtcdUnhealthy Reason = "EtcdUnhealthy"
	// ReasonEtcdUnreachable: the pods run and no quorum responds to the controller. Ends when a quorum responds, or its loss is proved.
	ReasonEtcdUnreachable Reason = diagnosis.ReasonEtcdUnreachable
	// ReasonExistingEtcdUnreachable: the etcd in spec.bootstrap.existing could not be read through a quorum. Ends when it responds.
	ReasonExistingEtcdUnreachable Reason = "ExistingEtcdUnreachable"
	// ReasonExistingEtcdUnsuitable: members of this cluster cannot join the etcd in spec.bootstrap.existing. Ends when what the message names is changed.
	ReasonExistingEtcdUnsuitable Reason = "ExistingEtcdUnsuitable"
	// ReasonForbidden: Kubernetes rejects a request of the controller. Ends when the controller has the right.
	ReasonForbidden Reason = "Forbidden"
	// ReasonImageNotPulled: a node cannot pull the image of a pod. Ends when spec.version, spec.repository or the credentials change, or the registry serves the image.
	ReasonImageNotPulled Reason = "ImageNotPulled"
	// ReasonImageRewritten: something else than the controller sets the image of a pod again each time after the controller has put it back. Ends when the members restart after that has stopped, or when the spec names that image.
	ReasonImageRewritten Reason = "ImageRewritten"
	// ReasonImageVersion: the image of a member holds another version of etcd than its tag says. Ends when spec.version, spec.repository or spec.imageDigest changes.
	ReasonImageVersion Reason = "ImageVersion"
	// ReasonLastBackupDataDiffers: no member and no PVC exist, and etcd reported that the data of its members differed (alarm CORRUPT) when the last backup was made. Ends with an EtcdRestore that names a backup.
	ReasonLastBackupDataDiffers Reason = recovery.ReasonLastBackupDataDiffers
	// ReasonLearnerCatchingUp: a learner has not read enough of the log to be promoted. Ends when it has, or when another member replaces it because it does not advance.
	ReasonLearnerCatchingUp Reason = "LearnerCatchingUp"
	// ReasonMemberListTooLarge: etcd lists more members, or more or longer URLs, than the controller reads. Ends when the list is smaller.
	ReasonMemberListTooLarge Reason = diagnosis.ReasonMemberListTooLarge
	// ReasonNameConflict: an object of a name that this cluster needs exists and is not owned by it. Ends when that object is deleted.
	ReasonNameConflict Reason = certificates.ReasonNameConflict
	// ReasonNamespaceTerminating: the namespace is being deleted, so nothing can be created in it. Never ends.
	ReasonNamespaceTerminating Reason = "NamespaceTerminating"
	// ReasonNoBackup: no member and no PVC exist, and no backup is known. Ends with an EtcdRestore.
	ReasonNoBackup Reason = recovery.ReasonNoBackup
	// ReasonNoLeader: the members do not agree on a leader or know none, or, of one member, it knows none. Ends with an election. Voters that know none for 10 s have lost the quorum.
	ReasonNoLeader Reason = diagnosis.ReasonNoLeader
	// ReasonOldPods: a pod of a deleted cluster of the same name still exists. Ends when that pod no longer exists.
	ReasonOldPods Reason = "OldPods"
	// ReasonOldMembersKept: all members of this cluster vote beside the old members of spec.bootstrap.existing. Ends when spec.bootstrap.existing.oldMembers is Remove.
	ReasonOldMembersKept Reason = "OldMembersKept"
	// ReasonPodFailed: a pod failed before its containers started. Ends when the cause in the message is removed.
	ReasonPodFailed Reason = "PodFailed"
	// ReasonPodUnschedulable: no node takes a pod. Ends when a node does.
	ReasonPodUnschedulable Reason = "PodUnschedulable"
	// ReasonPreparingLog: the log of etcd holds entries that the next version cannot read. Ends when every member has a snapshot behind them.
	ReasonPreparingLog Reason = "PreparingLog"
	// ReasonQuorumAtRisk: the next step could cost the quorum, because other members do not serve. Ends when they serve.
	ReasonQuorumAtRisk Reason = "QuorumAtRisk"
	// ReasonQuorumLost: fewer members serve than a quorum needs. Ends when enough of them are back, or with a recovery.
	ReasonQuorumLost Reason = diagnosis.ReasonQuorumLost
	// ReasonRestoreCutover: a restore is replacing the members, and the recovery member has the restored data. Ends when it serves clients. After two minutes without a quorum it is lost.
	ReasonRestoreCutover Reason = diagnosis.ReasonRestoreCutover
	// ReasonRestoreEnded: the cluster has no data, and the EtcdRestore that was to bring it has ended. Ends with another EtcdRestore.
	ReasonRestoreEnded Reason = recovery.ReasonRestoreEnded
	// ReasonRestoreNotFound: the annotation etcd.database.coreos.com/restore names an EtcdRestore of this cluster that does not exist. Ends with an EtcdRestore of this cluster, or without the annotation.
	ReasonRestoreNotFound Reason = "RestoreNotFound"
	// ReasonSourceLost: the member from which a recovery copies its data no longer exists. Ends when another member responds, or the recovery is abandoned.
	ReasonSourceLost Reason = recovery.ReasonSourceLost
	// ReasonStaleObservation: for minutes, Kubernetes or etcd has contradicted what the controller observed, so the next step was not carried out. Ends when both agree.
	ReasonStaleObservation Reason = "StaleObservation"
	// ReasonTooManyTakeOvers: as many EtcdClusters take over an etcd as the controller lets, in all or in a namespace. Ends when one of them has no old members any more, or is deleted.
	ReasonTooManyTakeOvers Reason = "TooManyTakeOvers"
	// ReasonTooManyDefragmentations: as many clusters defragment as the controller lets, in all or in a namespace. Ends when another defragmentation has ended.
	ReasonTooManyDefragmentations Reason = "TooManyDefragmentations"
	// ReasonUnmanagedMember: etcd has a member that this controller did not add. Ends when that member is removed.
	ReasonUnmanagedMember Reason = "UnmanagedMember"
	// ReasonVersionStep: etcd cannot move from the version that runs to the declared one in one step. Ends when spec.version changes.
	ReasonVersionStep Reason = "VersionStep"
	// ReasonVolumesBeingDeleted: PVCs of voters are being deleted, and their data is lost when the pods of these members end. Ends when other members have replaced them.
	ReasonVolumesBeingDeleted Reason = "VolumesBeingDeleted"
	// ReasonVolumesFound: PVCs of an earlier cluster of this name exist. Ends when spec.bootstrap.fromVolumes takes them back, or when they lose the labels etcd_cluster and etcd_recovery, or are deleted.
	ReasonVolumesFound Reason = v1beta2.ReasonVolumesFound
	// ReasonVolumesNotFound: spec.bootstrap.fromVolumes is set, and no PVC of an earlier cluster of this name exists. Ends when one does, or spec.bootstrap is removed.
	ReasonVolumesNotFound Reason = "VolumesNotFound"
	// ReasonWaitingForBootstrapMember: the bootstrap member does not respond yet. Ends when it does.
	ReasonWaitingForBootstrapMember Reason = "WaitingForBootstrapMember"
	// ReasonWaitingForMember: a member joins or restarts and does not serve yet. Ends when it serves.
	ReasonWaitingForMember Reason = "WaitingForMember"
	// ReasonWaitingForPod: a pod is being created, or a container is stopping. Ends when that is done.
	ReasonWaitingForPod Reason = "WaitingForPod"
	// ReasonWaitingForReady: a member serves and its pod is not ready. Ends when the kubelet reports it ready.
	ReasonWaitingForReady Reason = "WaitingForReady"
	// ReasonWaitingForRecoveryMember: the recovery member does not serve yet. Ends when it does, or the recovery is cancelled.
	ReasonWaitingForRecoveryMember Reason = recovery.ReasonWaitingForRecoveryMember
	// ReasonWaitingForRestore: an EtcdRestore fills the cluster. Ends with that EtcdRestore.
	ReasonWaitingForRestore Reason = recovery.ReasonWaitingForRestore
	// ReasonWaitingForService: the EndpointSlices of the client Service are behind. Ends when they are up to date.
	ReasonWaitingForService Reason = "WaitingForService"
	// ReasonWaitingForSurvivor: a recovery was requested and no member responds that holds the data. Ends when one does.
	ReasonWaitingForSurvivor Reason = recovery.ReasonWaitingForSurvivor
)

// Reasons of conditions, and of members that are not healthy. Those of CertificatesValid are in
// package certificates.
const (
	// ReasonAlarm: the member has raised an alarm. Ends when the alarm is disarmed.
	ReasonAlarm Reason = "Alarm"
	// ReasonAlarmRaised: a member has raised an alarm. Ends when the alarm is disarmed.
	ReasonAlarmRaised Reason = "AlarmRaised"
	// ReasonAllMembersHealthy: every voter is healthy. The good state.
	ReasonAllMembersHealthy Reason = "AllMembersHealthy"
	// ReasonAsDeclared: what exists is what is declared. The good state.
	ReasonAsDeclared Reason = "AsDeclared"
	// ReasonAttributesDiffer: a PVC has another volumeAttributesClassName than the declared one. Ends when they are equal.
	ReasonAttributesDiffer Reason = "AttributesDiffer"
	// ReasonCreating: the cluster has never served. Ends when it serves.
	ReasonCreating Reason = "Creating"
	// ReasonDatabaseFull: a database has reached its quota, and etcd rejects writes. Ends when each database is below its quota: the controller then disarms the alarm.
	ReasonDatabaseFull Reason = "DatabaseFull"
	// ReasonDataCorrupt: etcd has found that the data of members differs. Ends when the alarm is disarmed.
	ReasonDataCorrupt Reason = "DataCorrupt"
	// ReasonGrowing: a volume is smaller than declared and grows. Ends when it has grown.
	ReasonGrowing Reason = "Growing"
	// ReasonHibernated: spec.size is 0 and the PVCs are kept. Ends when spec.size is set.
	ReasonHibernated Reason = "Hibernated"
	// ReasonHibernating: spec.size is 0 and pods still exist. Ends when they do not.
	ReasonHibernating Reason = "Hibernating"
	// ReasonImmutable: the client Service cannot take a declared value while it exists. Ends when it is deleted, or the value is taken back.
	ReasonImmutable Reason = "Immutable"
	// ReasonMemberJoining: a member is being added. Ends when it votes.
	ReasonMemberJoining Reason = "MemberJoining"
	// ReasonMembersDoNotJoin: members in a row were removed because they did not catch up with the others. Ends when one votes.
	ReasonMembersDoNotJoin Reason = "MembersDoNotJoin"
	// ReasonMembersDiffer: the number of members is not the desired size. Ends when it is.
	ReasonMembersDiffer Reason = "MembersDiffer"
	// ReasonMembersMissing: a voter that did not serve was removed. Ends when the members vote that replace it.
	ReasonMembersMissing Reason = "MembersMissing"
	// ReasonMembersUnhealthy: voters do not serve, or their pods are not as declared. Ends when they are.
	ReasonMembersUnhealthy Reason = "MembersUnhealthy"
	// ReasonMissing: the client Service does not exist yet. Ends when it does.
	ReasonMissing Reason = "Missing"
	// ReasonNoOtherNode: a member must leave a cordoned node, and no other node takes the pod of its successor. Changes that need a new pod of that member wait. Ends when a node does, or the node is uncordoned.
	ReasonNoOtherNode Reason = "NoOtherNode"
	// ReasonNoPod: the member has no pod. Ends when it has one.
	ReasonNoPod Reason = "NoPod"
	// ReasonNotOwned: a client Service or a PodDisruptionBudget exists and is not owned by this cluster. Ends when that object is deleted.
	ReasonNotOwned Reason = "NotOwned"
	// ReasonNotPaused: spec.paused is false. The good state.
	ReasonNotPaused Reason = "NotPaused"
	// ReasonNotRecovering: no recovery was ever begun. The good state.
	ReasonNotRecovering Reason = "NotRecovering"
	// ReasonNotStarted: the member was added and has not joined yet. Ends when it joins.
	ReasonNotStarted Reason = "NotStarted"
	// ReasonOperation: a requested operation is under way. Ends with it.
	ReasonOperation Reason = "Operation"
	// ReasonPaused: spec.paused is true and the cluster is not as declared. Ends when spec.paused is false.
	ReasonPaused Reason = "Paused"
	// ReasonQuorumHealthy: a quorum responds. The good state.
	ReasonQuorumHealthy Reason = "QuorumHealthy"
	// ReasonQuorumNotLost: no loss of the quorum is proved. The good state.
	ReasonQuorumNotLost Reason = "QuorumNotLost"
	// ReasonReconciling: the controller changes objects that have no reason of their own. Ends by itself.
	ReasonReconciling Reason = "Reconciling"
	// ReasonRecovering: the cluster continues in a recovery member. Ends with status.recovery.
	ReasonRecovering Reason = "Recovering"
	// ReasonRecreatingPod: the pod of a member that has a PVC is created again. Ends when it exists.
	ReasonRecreatingPod Reason = "RecreatingPod"
	// ReasonRejected: Kubernetes rejects the declared client Service. Ends when spec.services.client or the policy changes.
	ReasonRejected Reason = "Rejected"
	// ReasonRemovingClient: the Secret of a client that was removed still exists. Ends when it is deleted.
	ReasonRemovingClient Reason = "RemovingClient"
	// ReasonRemovingMember: a member is being removed. Ends when it is.
	ReasonRemovingMember Reason = "RemovingMember"
	// ReasonReplacingMember: a lost member is being replaced, or one on a cordoned node. Ends when the new member votes.
	ReasonReplacingMember Reason = "ReplacingMember"
	// ReasonRequested: spec.paused is true. Ends when it is false.
	ReasonRequested Reason = "Requested"
	// ReasonRollingOut: members restart one after the other to become as declared. Ends with the last one.
	ReasonRollingOut Reason = "RollingOut"
	// ReasonScalingDown: there are more voters than the desired size. Ends when there are as many.
	ReasonScalingDown Reason = "ScalingDown"
	// ReasonScalingUp: there are fewer voters than the desired size. Ends when there are as many.
	ReasonScalingUp Reason = "ScalingUp"
	// ReasonSizeReached: there are as many voters as the desired size. The good state.
	ReasonSizeReached Reason = "SizeReached"
	// ReasonNotServing: the member responds and does not complete a linearizable read, as with a
	// disk that takes no writes. Ends when it completes one.
	ReasonNotServing Reason = "NotServing"
	// ReasonTakingOver: members join the etcd in spec.bootstrap.existing, or its old members are being removed. Ends when only members of this cluster are left.
	ReasonTakingOver Reason = "TakingOver"
	// ReasonUnresponsive: the member did not respond in time. Ends when it responds.
	ReasonUnresponsive Reason = "Unresponsive"
	// ReasonVersionChange: members move to another version. Ends when all run it.
	ReasonVersionChange Reason = "VersionChange"
	// ReasonVersionReached: every voter runs the declared version. The good state.
	ReasonVersionReached Reason = "VersionReached"
	// ReasonVersionUnknown: no member has said its version. Ends when one does.
	ReasonVersionUnknown Reason = "VersionUnknown"
)
