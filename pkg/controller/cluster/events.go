// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import corev1 "k8s.io/api/core/v1"

// Reasons of the events on an EtcdCluster. They are part of the API: alerts match
// them.
const (
	EventClusterStarted = "ClusterStarted"
	EventMemberAdded    = "MemberAdded"
	EventMemberPromoted = "MemberPromoted"
	EventMemberRemoved  = "MemberRemoved"
	// EventOldMemberRemoved: a member of the etcd in spec.bootstrap.existing was removed, as spec.bootstrap.existing.oldMembers requests.
	EventOldMemberRemoved = "OldMemberRemoved"
	EventMemberLost       = "MemberLost"
	// EventMemberUpgraded: a member restarts with another version. A warning says so if the cluster has no quorum until it serves.
	EventMemberUpgraded = "MemberUpgraded"
	// EventMemberRestarted: a member restarts to follow the spec. A warning says so if the cluster has no quorum until it serves.
	EventMemberRestarted = "MemberRestarted"
	EventMemberReplaced  = "MemberReplaced"
	EventLogPrepared     = "LogPrepared"
	EventVolumeGrows     = "VolumeGrows"
	EventVolumesDeleted  = "VolumesDeleted"
	EventVolumesRetained = "VolumesRetained"
	EventVolumeTakenBack = "VolumeTakenBack"
	EventGrowthRejected  = "VolumeGrowthRefused"
	EventLeaderMoved     = "LeaderMoved"
	EventServiceRepaired = "ServiceRepaired"
	EventPodRejected     = "PodRejected"
	EventPodFailed       = "PodFailed"
	// EventQuorumLost: the loss of the quorum is proved. The message says which members are lost, and what brings the cluster back.
	EventQuorumLost     = "QuorumLost"
	EventQuorumRegained = "QuorumRegained"

	EventCAIssued  = "CAIssued"
	EventCADropped = "CADropped"
	// EventCARestored: the Secret of the CA was deleted or damaged. The controller has written it back from memory.
	EventCARestored = "CARestored"
	// EventCAReturned: a person or a program has put an older Secret of the CA back. The controller trusts both CAs until all members trust the older one and have certificates of it.
	EventCAReturned           = "CAReturned"
	EventCertificateIssued    = "CertificateIssued"
	EventCertificateRequested = "CertificateRequested"
	// EventCertificatesWrong: a certificate or its Secret cannot be used. The message is that of the condition CertificatesValid: it names the Secret and the remedy.
	EventCertificatesWrong   = "CertificatesWrong"
	EventCertificatesUsable  = "CertificatesUsable"
	EventClientSecretDeleted = "ClientSecretDeleted"

	EventRecoveryStarted = "RecoveryStarted"
	// EventSourceStopped: the pod of a member is deleted, because it does not respond and a recovery reads its PVC.
	EventSourceStopped   = "SourceStopped"
	EventRecoveryCutover = "RecoveryCutover"
	EventRecovered       = "Recovered"
	// EventPVCKept: a recovery is over, and the PVC of an old member may hold data that the cluster does not have.
	EventPVCKept            = "PVCKept"
	EventRecoveryAbandoned  = "RecoveryAbandoned"
	EventRestoreRequested   = "RestoreRequested"
	EventOperationStarted   = "OperationStarted"
	EventOperationSucceeded = "OperationSucceeded"
	EventOperationFailed    = "OperationFailed"
	EventAlarmDisarmed      = "AlarmDisarmed"
)

// normal records an event about the cluster.
func normal(r *run, reason, format string, args ...any) {
	r.Recorder.Eventf(r.seen.Cluster, corev1.EventTypeNormal, reason, format, args...)
}

// warning records an event that needs attention.
func warning(r *run, reason, format string, args ...any) {
	r.Recorder.Eventf(r.seen.Cluster, corev1.EventTypeWarning, reason, format, args...)
}
