// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterPhase is a one-word summary of a cluster.
type ClusterPhase string

// Values of ClusterPhase.
const (
	// ClusterPhaseNone is a cluster that no controller has observed yet.
	ClusterPhaseNone ClusterPhase = ""
	// ClusterPhaseCreating is a cluster that has never served.
	ClusterPhaseCreating ClusterPhase = "Creating"
	// ClusterPhaseRunning is a cluster that has served, and whose quorum is not proved lost.
	ClusterPhaseRunning ClusterPhase = "Running"
	// ClusterPhaseFailed is a cluster without a quorum. The reason of the status says why.
	ClusterPhaseFailed ClusterPhase = "Failed"
	// ClusterPhaseHibernated is a cluster of size 0: no pods, all volumes kept.
	ClusterPhaseHibernated ClusterPhase = "Hibernated"
)

// ClusterStatus is what the controller last observed of a cluster.
type ClusterStatus struct {
	// phase is a one-word summary: Creating, Running, Failed or Hibernated.
	// +optional
	Phase ClusterPhase `json:"phase" protobuf:"bytes,1,opt,name=phase,casttype=ClusterPhase"`
	// reason says why the phase is Failed, or why etcd rejects writes while it is Running.
	Reason string `json:"reason,omitempty" protobuf:"bytes,2,opt,name=reason"`
	// controlPaused is true while the controller leaves the cluster alone.
	ControlPaused bool `json:"controlPaused,omitempty" protobuf:"varint,3,opt,name=controlPaused"`
	// conditions say what is true of the cluster now.
	// +listType=map
	// +listMapKey=type
	Conditions []ClusterCondition `json:"conditions,omitempty" protobuf:"bytes,4,rep,name=conditions"`
	// size is the number of members in etcd's own member list.
	// +optional
	Replicas int32 `json:"size" protobuf:"varint,5,opt,name=size"`
	// serviceName is the name of the client Service.
	ServiceName string `json:"serviceName,omitempty" protobuf:"bytes,6,opt,name=serviceName"`
	// clientPort is the port of that service.
	ClientPort int32 `json:"clientPort,omitempty" protobuf:"varint,7,opt,name=clientPort"`
	// members lists the names of the members by readiness.
	// +optional
	Members MembersStatus `json:"members" protobuf:"bytes,8,opt,name=members"`
	// currentVersion is the lowest version that a member runs.
	// +optional
	CurrentVersion string `json:"currentVersion" protobuf:"bytes,9,opt,name=currentVersion"`
	// targetVersion is the version that an upgrade under way goes to.
	// +optional
	TargetVersion string `json:"targetVersion" protobuf:"bytes,10,opt,name=targetVersion"`

	// observedGeneration is the generation of the spec that this status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,11,opt,name=observedGeneration"`
	// selector selects the members' pods, in the form that /scale wants.
	Selector string `json:"selector,omitempty" protobuf:"bytes,12,opt,name=selector"`
	// leader is the name of the member that leads.
	Leader string `json:"leader,omitempty" protobuf:"bytes,13,opt,name=leader"`
	// tolerance is how many more voters may fail before the quorum is lost. It is
	// negative when the quorum is lost, and absent while it is not known.
	Tolerance *int32 `json:"tolerance,omitempty" protobuf:"varint,14,opt,name=tolerance"`
	// dbSize is the size in bytes of the largest database file of a member.
	DBSize int64 `json:"dbSize,omitempty" protobuf:"varint,15,opt,name=dbSize"`
	// memberStatuses tells about each member.
	// +listType=atomic
	MemberStatuses []MemberStatus `json:"memberStatuses,omitempty" protobuf:"bytes,16,rep,name=memberStatuses"`
	// lastBackup is the newest good backup of this cluster.
	LastBackup *LastBackup `json:"lastBackup,omitempty" protobuf:"bytes,17,opt,name=lastBackup"`
	// blockedBy is what the controller waits for, if it waits.
	BlockedBy *BlockedBy `json:"blockedBy,omitempty" protobuf:"bytes,18,opt,name=blockedBy"`
	// operation is the last one that was requested, such as a defragmentation.
	Operation *ClusterOperation `json:"operation,omitempty" protobuf:"bytes,19,opt,name=operation"`
	// certificates tells about each certificate of a cluster with spec.TLS.
	// +listType=map
	// +listMapKey=use
	Certificates []CertificateStatus `json:"certificates,omitempty" protobuf:"bytes,20,rep,name=certificates"`
	// recovery is the last time that the data of the cluster went on in new members,
	// after a lost quorum or by an EtcdRestore.
	Recovery *RecoveryStatus `json:"recovery,omitempty" protobuf:"bytes,21,opt,name=recovery"`
	// permanentQuorumLossSince is since when it is proven, without a break, that nothing
	// that exists can bring the quorum back. It is absent while that is not proven. An
	// automatic recovery (spec.recovery.quorumLoss) begins 30 seconds later.
	PermanentQuorumLossSince *metav1.Time `json:"permanentQuorumLossSince,omitempty" protobuf:"bytes,22,opt,name=permanentQuorumLossSince"`
	// binding names the Secret of the first client, once that Secret is as declared. With it the
	// cluster is a provisioned service of the Service Binding specification.
	Binding *corev1.LocalObjectReference `json:"binding,omitempty" protobuf:"bytes,23,opt,name=binding"`
	// clients tells about the Secret of each client. A Secret is listed here before it is
	// created and until it is deleted.
	// +listType=map
	// +listMapKey=secretName
	Clients []ClientStatus `json:"clients,omitempty" protobuf:"bytes,24,rep,name=clients"`
	// joining tells how the member that joins advances. It is absent while no member joins and the last one
	// has joined.
	Joining *JoiningStatus `json:"joining,omitempty" protobuf:"bytes,25,opt,name=joining"`
	// restores are the EtcdRestores whose data the cluster has taken over, the newest first, and at most 20. An
	// EtcdRestore that is created again is not carried out again, and no backup of data that the newest one has
	// replaced is lastBackup.
	// +listType=atomic
	Restores []ClusterRestore `json:"restores,omitempty" protobuf:"bytes,26,rep,name=restores"`
}

// MaxClusterRestores is how many restores the status of a cluster tells of.
const MaxClusterRestores = 20

// ClusterRestore is an EtcdRestore whose data a cluster takes over.
type ClusterRestore struct {
	// name of the EtcdRestore.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// uid of the EtcdRestore, which is also the ID of its recovery.
	UID string `json:"uid" protobuf:"bytes,2,opt,name=uid"`
	// request is a hash of what the EtcdRestore asked for.
	Request string `json:"request,omitempty" protobuf:"bytes,3,opt,name=request"`
	// backup is the name of the EtcdBackup; empty if the EtcdRestore names a place in a store.
	Backup string `json:"backup,omitempty" protobuf:"bytes,4,opt,name=backup"`
	// revision of the key space in the backup.
	Revision int64 `json:"revision,omitempty" protobuf:"varint,5,opt,name=revision"`
	// revisionBump was added to that revision.
	RevisionBump int64 `json:"revisionBump,omitempty" protobuf:"varint,6,opt,name=revisionBump"`
	// time since when the cluster has the data; absent while the restore is under way.
	Time *metav1.Time `json:"time,omitempty" protobuf:"bytes,7,opt,name=time"`
}

// JoiningStatus tells how a member advances that joins and does not vote yet.
type JoiningStatus struct {
	// member that joins; empty after it was removed without a vote, until the next one joins.
	Member string `json:"member,omitempty" protobuf:"bytes,1,opt,name=member"`
	// raftIndex is the raft entry up to which the member has committed, as far as it has responded.
	RaftIndex int64 `json:"raftIndex,omitempty" protobuf:"varint,2,opt,name=raftIndex"`
	// progressTime is when the member was last seen to advance: it was added, or its raft index grew.
	// If it does not advance for long enough, another member replaces it.
	ProgressTime metav1.Time `json:"progressTime,omitempty" protobuf:"bytes,3,opt,name=progressTime"`
	// failures is how many members in a row were removed before they had a vote. The next one
	// gets more time.
	Failures int32 `json:"failures,omitempty" protobuf:"varint,4,opt,name=failures"`
}

// MembersStatus lists the names of the members by readiness.
type MembersStatus struct {
	// ready members serve clients.
	// +listType=atomic
	Ready []string `json:"ready,omitempty" protobuf:"bytes,1,rep,name=ready"`
	// unready members do not.
	// +listType=atomic
	Unready []string `json:"unready,omitempty" protobuf:"bytes,2,rep,name=unready"`
}

// MemberRole is what a member is to its cluster.
type MemberRole string

// Values of MemberRole.
const (
	// MemberRoleLeader is the voter that orders the writes.
	MemberRoleLeader MemberRole = "Leader"
	// MemberRoleFollower is a voter that is not the leader.
	MemberRoleFollower MemberRole = "Follower"
	// MemberRoleLearner is a member that reads the log and does not vote yet.
	MemberRoleLearner MemberRole = "Learner"
	// MemberRolePending is a member whose pod exists or will exist and that is not
	// in etcd's member list yet, or was added and has not started.
	MemberRolePending MemberRole = "Pending"
)

// MemberStatus tells about one member.
type MemberStatus struct {
	// name of the member and of its pod.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// id is etcd's member ID in hexadecimal.
	ID string `json:"id,omitempty" protobuf:"bytes,2,opt,name=id"`
	// pod is the name of the pod; empty while there is none.
	Pod string `json:"pod,omitempty" protobuf:"bytes,3,opt,name=pod"`
	// node that the pod runs on.
	Node string `json:"node,omitempty" protobuf:"bytes,4,opt,name=node"`
	// PVC is the name of the PersistentVolumeClaim that holds the member's data.
	Claim string `json:"claim,omitempty" protobuf:"bytes,5,opt,name=claim"`
	// version of etcd that the member says it runs.
	Version string `json:"version,omitempty" protobuf:"bytes,6,opt,name=version"`
	// role: Leader, Follower, Learner or Pending.
	Role MemberRole `json:"role,omitempty" protobuf:"bytes,7,opt,name=role,casttype=MemberRole"`
	// healthy: True if the member responded and has a leader, False if not, Unknown
	// if no request reached it.
	Healthy corev1.ConditionStatus `json:"healthy,omitempty" protobuf:"bytes,8,opt,name=healthy,casttype=k8s.io/api/core/v1.ConditionStatus"`
	// reason says in one CamelCase word why healthy is not True.
	Reason string `json:"reason,omitempty" protobuf:"bytes,9,opt,name=reason"`
	// message says the same for a reader.
	Message string `json:"message,omitempty" protobuf:"bytes,10,opt,name=message"`
	// dbSize is the size in bytes of the member's database file.
	DBSize int64 `json:"dbSize,omitempty" protobuf:"varint,11,opt,name=dbSize"`
	// raftLag is how many raft entries the member is behind the leader's commit.
	RaftLag int64 `json:"raftLag,omitempty" protobuf:"varint,12,opt,name=raftLag"`
	// alarms that the member knows of, such as NOSPACE.
	// +listType=atomic
	Alarms []string `json:"alarms,omitempty" protobuf:"bytes,14,rep,name=alarms"`
	// raftIndex is the raft entry up to which the member has committed. It is reported
	// while the quorum is lost: the member with the highest one has lost the least.
	RaftIndex int64 `json:"raftIndex,omitempty" protobuf:"varint,13,opt,name=raftIndex"`
	// unmanaged is true for a member that the controller did not add, such as an old member of
	// the etcd in spec.bootstrap.existing.
	Unmanaged bool `json:"unmanaged,omitempty" protobuf:"varint,15,opt,name=unmanaged"`
}

// LastBackup is the newest good backup of a cluster.
type LastBackup struct {
	// name of the EtcdBackup.
	Name string `json:"name,omitempty" protobuf:"bytes,1,opt,name=name"`
	// time at which the snapshot was complete.
	Time metav1.Time `json:"time,omitempty" protobuf:"bytes,2,opt,name=time"`
	// revision of the key space in it.
	Revision int64 `json:"revision,omitempty" protobuf:"varint,3,opt,name=revision"`
	// verified is true if the stored copy was proved good; verifiedBy says how.
	Verified bool `json:"verified,omitempty" protobuf:"varint,4,opt,name=verified"`
	// verifiedBy is how it was proved: Hash, Checksum or Restore.
	VerifiedBy Verification `json:"verifiedBy,omitempty" protobuf:"bytes,5,opt,name=verifiedBy,casttype=Verification"`
	// unconfirmed is true if no quorum confirmed that the member had every write, and no confirmed backup has as many.
	Unconfirmed bool `json:"unconfirmed,omitempty" protobuf:"varint,6,opt,name=unconfirmed"`
	// encrypted is true if a restore needs spec.decryption.
	Encrypted bool `json:"encrypted,omitempty" protobuf:"varint,7,opt,name=encrypted"`
	// dataDiffers is true if etcd reported that the data of its members differed (alarm CORRUPT) when it was made, and no
	// other backup is known. It may have the wrong data, so it is restored only if a request names it.
	DataDiffers bool `json:"dataDiffers,omitempty" protobuf:"varint,8,opt,name=dataDiffers"`
}

// BlockedBy is what the controller waits for.
type BlockedBy struct {
	// reason in one CamelCase word.
	Reason string `json:"reason" protobuf:"bytes,1,opt,name=reason"`
	// message for a reader: what is waited for.
	Message string `json:"message,omitempty" protobuf:"bytes,2,opt,name=message"`
	// since when.
	Since metav1.Time `json:"since,omitempty" protobuf:"bytes,3,opt,name=since"`
	// unblock is the remediation: what the user can do so that the controller continues.
	Unblock string `json:"unblock,omitempty" protobuf:"bytes,4,opt,name=unblock"`
}

// ClusterConditionType names a condition of a cluster.
type ClusterConditionType string

// Condition types of an EtcdCluster.
const (
	ClusterConditionReady       ClusterConditionType = ConditionReady
	ClusterConditionReconciling ClusterConditionType = ConditionReconciling
	ClusterConditionStalled     ClusterConditionType = ConditionStalled

	ClusterConditionAvailable   ClusterConditionType = "Available"
	ClusterConditionProgressing ClusterConditionType = "Progressing"
	ClusterConditionDegraded    ClusterConditionType = "Degraded"
	ClusterConditionQuorumLost  ClusterConditionType = "QuorumLost"
	ClusterConditionScaling     ClusterConditionType = "Scaling"
	ClusterConditionUpgrading   ClusterConditionType = "Upgrading"
	ClusterConditionRecovering  ClusterConditionType = "Recovering"
	ClusterConditionPaused      ClusterConditionType = "Paused"
	// ClusterConditionBackupHealthy exists for clusters with periodic backups, and is False while
	// one of them has failed or is overdue. The message names the EtcdBackup: its status says why.
	ClusterConditionBackupHealthy     ClusterConditionType = "BackupHealthy"
	ClusterConditionCertificatesValid ClusterConditionType = "CertificatesValid"
	// ClusterConditionVolumesAsDeclared exists for clusters whose members have volumes.
	ClusterConditionVolumesAsDeclared ClusterConditionType = "VolumesAsDeclared"
	// ClusterConditionServiceAsDeclared exists for clusters that configure the client
	// Service.
	ClusterConditionServiceAsDeclared ClusterConditionType = "ServiceAsDeclared"
	// ClusterConditionClientsAsDeclared exists for clusters with spec.clients.
	ClusterConditionClientsAsDeclared ClusterConditionType = "ClientsAsDeclared"
	// ClusterConditionBudgetAsDeclared exists, and is False, while a PodDisruptionBudget of another owner has the name of
	// that of the cluster. Nothing limits evictions of members then.
	ClusterConditionBudgetAsDeclared ClusterConditionType = "BudgetAsDeclared"
	// ClusterConditionOnCordonedNode exists, and is True, while a member of a cluster of one or
	// two must leave a cordoned node.
	ClusterConditionOnCordonedNode ClusterConditionType = "OnCordonedNode"
	// ClusterConditionStatusIncomplete exists, and is True, while the controller leaves out of the
	// status what the API rejects.
	ClusterConditionStatusIncomplete ClusterConditionType = ConditionStatusIncomplete
)

// Reason of the condition VolumesAsDeclared.
const (
	// ReasonGrowthRejected: Kubernetes does not let a volume grow as declared. Ends when the
	// old size is declared again, or the growth is allowed and the annotation that the message names
	// is removed from the PVC.
	ReasonGrowthRejected = "GrowthRejected"
)

// Reason of several conditions.
const (
	// ReasonPodRejected: Kubernetes rejects a pod, or an object that it needs: a quota is used up, or
	// a policy forbids it. Ends by itself within seconds after Kubernetes accepts it.
	ReasonPodRejected = "PodRejected"
	// ReasonVolumesFound: PVCs of an earlier cluster of this name exist, and the cluster does not begin empty beside them.
	ReasonVolumesFound = "VolumesFound"
)

// ReasonOldMemberMayRun is why a recovery or a restore does not go on while there is no
// evidence that a member that it replaces has ended.
const ReasonOldMemberMayRun = "OldMemberMayRun"

// ReasonWaitingForRestore is why a cluster or a recovery waits: an EtcdRestore fills it, or is to name its backup again.
const ReasonWaitingForRestore = "WaitingForRestore"

// ReasonPreRestoreBackupTooOld is why a recovery does not decommission members that serve: the pre-restore backup lacks
// what they have accepted since, or no quorum confirmed it and one responds. The EtcdRestore then makes another backup.
const ReasonPreRestoreBackupTooOld = "PreRestoreBackupTooOld"

// ClusterCondition is one condition of a cluster. Its times are RFC 3339 strings,
// as they always were in this API.
type ClusterCondition struct {
	// type of the condition.
	Type ClusterConditionType `json:"type" protobuf:"bytes,1,opt,name=type,casttype=ClusterConditionType"`
	// status: True, False or Unknown.
	Status corev1.ConditionStatus `json:"status" protobuf:"bytes,2,opt,name=status,casttype=k8s.io/api/core/v1.ConditionStatus"`
	// lastUpdateTime is when status, reason or message last changed.
	LastUpdateTime string `json:"lastUpdateTime,omitempty" protobuf:"bytes,3,opt,name=lastUpdateTime"`
	// lastTransitionTime is when the status last changed.
	LastTransitionTime string `json:"lastTransitionTime,omitempty" protobuf:"bytes,4,opt,name=lastTransitionTime"`
	// reason in one CamelCase word.
	Reason string `json:"reason,omitempty" protobuf:"bytes,5,opt,name=reason"`
	// message for a reader.
	Message string `json:"message,omitempty" protobuf:"bytes,6,opt,name=message"`
	// observedGeneration is the generation of the spec that this condition is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,7,opt,name=observedGeneration"`
}

// Condition types that every kind of this group has. They follow what kubectl wait,
// Flux, Argo CD and Helm expect: Ready says whether the object is as declared, and
// Reconciling and Stalled are present only while they are True. At most one of the
// three is True.
const (
	// ConditionReady is True once what the spec declares has been reached.
	ConditionReady = "Ready"
	// ConditionReconciling is there while the controller works towards the spec.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is there while a person or something outside must change before
	// the controller can go on.
	ConditionStalled = "Stalled"
	// ConditionStatusIncomplete is there while the controller leaves out of the status what the API
	// rejects, so that everything else is reported.
	ConditionStatusIncomplete = "StatusIncomplete"
)

// Reason of the condition StatusIncomplete.
const (
	// ReasonFieldsLeftOut: the API rejects fields of the status that the controller observed, and the
	// message names them. Ends when the observation changes, or an API server that accepts them runs.
	ReasonFieldsLeftOut = "FieldsLeftOut"
)

// Reason of the conditions of a new object.
const (
	// ReasonNotObserved: no controller has looked at the object yet. Ends within seconds while a
	// controller runs whose flags select the namespace.
	ReasonNotObserved = "NotObserved"
)
