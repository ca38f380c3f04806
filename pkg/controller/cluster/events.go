// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// Reasons of the events on an EtcdCluster. They are part of the API: alerts match
// them.
const (
	EventClusterStarted  = "ClusterStarted"
	EventMemberAdded     = "MemberAdded"
	EventMemberPromoted  = "MemberPromoted"
	EventMemberRemoved   = "MemberRemoved"
	EventMemberLost      = "MemberLost"
	EventMemberUpgraded  = "MemberUpgraded"
	EventMemberRestarted = "MemberRestarted"
	EventMemberReplaced  = "MemberReplaced"
	EventLogPrepared     = "LogPrepared"
	EventVolumeGrows     = "VolumeGrows"
	EventVolumesDeleted  = "VolumesDeleted"
	EventVolumesRetained = "VolumesRetained"
	EventVolumesLeft     = "EtcdClusterMissing"
	EventGrowthRefused   = "VolumeGrowthRefused"
	EventLeaderMoved     = "LeaderMoved"
	EventServiceRepaired = "ServiceRepaired"
	EventPodRejected     = "PodRejected"
	EventPodFailed       = "PodFailed"
	EventQuorumLost      = "QuorumLost"
	EventQuorumRegained  = "QuorumRegained"

	EventAuthorityIssued      = "AuthorityIssued"
	EventAuthorityDropped     = "AuthorityDropped"
	EventCertificateIssued    = "CertificateIssued"
	EventCertificateRequested = "CertificateRequested"
	EventCertificatesWrong    = "CertificatesWrong"
	EventCertificatesUsable   = "CertificatesUsable"

	EventRecoveryStarted    = "RecoveryStarted"
	EventRecoverySwitching  = "RecoverySwitching"
	EventRecovered          = "Recovered"
	EventRecoveryAbandoned  = "RecoveryAbandoned"
	EventRestoreRequested   = "RestoreRequested"
	EventOperationStarted   = "OperationStarted"
	EventOperationSucceeded = "OperationSucceeded"
	EventOperationFailed    = "OperationFailed"
	EventAlarmDisarmed      = "AlarmDisarmed"
)
