// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationRestore on an EtcdCluster names the EtcdRestore that made it: it starts with
// the data of that, and never empty. The controller removes it when the cluster has served.
const AnnotationRestore = "etcd.database.coreos.com/restore"

// AnnotationRestoreUID on an EtcdCluster is the UID of the EtcdRestore that made it. It goes with AnnotationRestore.
const AnnotationRestoreUID = "etcd.database.coreos.com/restore-uid"

// AnnotationRebuilt on an EtcdCluster says that it was made again from its record. The EtcdBackup that held backups for
// users is lost then, so the controller holds all backups of the schedule until a user releases them.
const AnnotationRebuilt = "etcd.database.coreos.com/rebuilt"

// AnnotationRestoreAgain on an EtcdRestore has a restore carried out that repeats an earlier one: each value is another
// request.
const AnnotationRestoreAgain = "etcd.database.coreos.com/restore-again"

// AnnotationAutomaticRestore on an EtcdRestore is the UID of the EtcdCluster for whose permanent quorum loss the
// controller created it. The restore is tried for as long as that loss lasts, and ends with it.
const AnnotationAutomaticRestore = "etcd.database.coreos.com/automatic-restore-of"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EtcdClusterRecovery is what is sent to the subresource recover of a cluster that
// has lost its quorum, and what comes back from it. It is not stored: the recovery
// goes on in the status of the cluster.
type EtcdClusterRecovery struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec is what is requested.
	// +optional
	Spec ClusterRecoverySpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// status is the plan, as far as it was known when it was requested.
	// +optional
	Status RecoveryStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// ClusterRecoverySpec says how a cluster is recovered.
type ClusterRecoverySpec struct {
	// member to go on from. Default: the surviving member with the highest raft index,
	// which is the one that has lost the least. If no member responds: the only voter
	// that has a PVC.
	Member string `json:"member,omitempty" protobuf:"bytes,1,opt,name=member"`
	// clusterUID, if set, must be the UID of the cluster.
	ClusterUID string `json:"clusterUID,omitempty" protobuf:"bytes,2,opt,name=clusterUID"`
}

// RecoveryTrigger is why the data of a cluster goes on in new members.
type RecoveryTrigger string

// Values of RecoveryTrigger.
const (
	// RecoveryTriggerRequest is a request to the subresource recover.
	RecoveryTriggerRequest RecoveryTrigger = "Request"
	// RecoveryTriggerAutomatic is spec.recovery.quorumLoss: Automatic.
	RecoveryTriggerAutomatic RecoveryTrigger = "Automatic"
	// RecoveryTriggerRestore is an EtcdRestore.
	RecoveryTriggerRestore RecoveryTrigger = "Restore"
)

// RecoveryPhase is how far a recovery has come.
type RecoveryPhase string

// Values of RecoveryPhase.
const (
	// RecoveryPhasePending: it was requested.
	RecoveryPhasePending RecoveryPhase = "Pending"
	// RecoveryPhaseFilling: a new bootstrap member is being filled, out of sight of clients
	// and of the members that are left. Those are untouched, and go on if their quorum
	// comes back.
	RecoveryPhaseFilling RecoveryPhase = "Filling"
	// RecoveryPhaseCutover: the recovery member has served a write. The controller fences
	// the old members, then publishes the recovery member to clients. There is no way back.
	RecoveryPhaseCutover RecoveryPhase = "Cutover"
	// RecoveryPhaseCleaning: the new members serve clients. The controller releases the
	// PVCs of the old members.
	RecoveryPhaseCleaning RecoveryPhase = "Cleaning"
	// RecoveryPhaseSucceeded: the recovery is complete, and the new members serve the data.
	RecoveryPhaseSucceeded RecoveryPhase = "Succeeded"
	// RecoveryPhaseAbandoned: the recovery has stopped, and the old members are unchanged.
	RecoveryPhaseAbandoned RecoveryPhase = "Abandoned"
)

// RecoveryStatus is a recovery: the data of the cluster goes on in new members, which
// are another etcd cluster with an ID of its own.
type RecoveryStatus struct {
	// id tells this recovery apart from any other one.
	ID string `json:"id,omitempty" protobuf:"bytes,1,opt,name=id"`
	// trigger: Request, Automatic or Restore.
	Trigger RecoveryTrigger `json:"trigger,omitempty" protobuf:"bytes,2,opt,name=trigger,casttype=RecoveryTrigger"`
	// phase: Pending, Filling, Cutover, Cleaning, Succeeded or Abandoned.
	Phase RecoveryPhase `json:"phase,omitempty" protobuf:"bytes,3,opt,name=phase,casttype=RecoveryPhase"`
	// message for a reader: what it waits for, or why it was abandoned.
	Message string `json:"message,omitempty" protobuf:"bytes,4,opt,name=message"`
	// source of the data.
	Source RecoverySource `json:"source,omitempty" protobuf:"bytes,5,opt,name=source"`
	// survivors are the members that responded when the plan was made.
	// +listType=map
	// +listMapKey=name
	Survivors []RecoverySurvivor `json:"survivors,omitempty" protobuf:"bytes,6,rep,name=survivors"`
	// expectedLoss says what the new members will not have.
	ExpectedLoss string `json:"expectedLoss,omitempty" protobuf:"bytes,7,opt,name=expectedLoss"`
	// oldMembers are the members that are replaced.
	// +listType=atomic
	OldMembers []string `json:"oldMembers,omitempty" protobuf:"bytes,8,rep,name=oldMembers"`
	// oldClusterID is etcd's cluster ID of those, in hexadecimal; empty if there were none.
	OldClusterID string `json:"oldClusterID,omitempty" protobuf:"bytes,9,opt,name=oldClusterID"`
	// recoveryMember is the name of the new bootstrap member, which receives the data.
	RecoveryMember string `json:"recoveryMember,omitempty" protobuf:"bytes,10,opt,name=recoveryMember"`
	// clusterID is etcd's cluster ID of the new members, in hexadecimal.
	ClusterID string `json:"clusterID,omitempty" protobuf:"bytes,11,opt,name=clusterID"`
	// revisionBump is added to the revision of the data, so that no client sees time
	// go back; what a client watched before is compacted.
	RevisionBump int64 `json:"revisionBump,omitempty" protobuf:"varint,12,opt,name=revisionBump"`
	// version of etcd that the new bootstrap member runs.
	Version string `json:"version,omitempty" protobuf:"bytes,13,opt,name=version"`
	// requestedAt is when it was requested.
	RequestedAt metav1.Time `json:"requestedAt,omitempty" protobuf:"bytes,14,opt,name=requestedAt"`
	// completionTime is when it was over.
	CompletionTime *metav1.Time `json:"completionTime,omitempty" protobuf:"bytes,15,opt,name=completionTime"`
	// cancelled asks to abandon it, which is possible before phase Cutover.
	Cancelled bool `json:"cancelled,omitempty" protobuf:"varint,16,opt,name=cancelled"`
	// member that was requested as the source; empty for the one that has lost the least.
	Member string `json:"member,omitempty" protobuf:"bytes,17,opt,name=member"`
	// requestedBy is the user that created etcdclusters/recover. It is empty for a
	// recovery that began by itself, and for one that an EtcdRestore asked for.
	RequestedBy string `json:"requestedBy,omitempty" protobuf:"bytes,18,opt,name=requestedBy"`
	// onlyIfUnresponsive abandons a restore if a member of the cluster responds before phase Cutover. It is set for a
	// restore without a pre-restore backup, because no member responded that could send its data.
	OnlyIfUnresponsive bool `json:"onlyIfUnresponsive,omitempty" protobuf:"varint,19,opt,name=onlyIfUnresponsive"`
}

// RecoverySource is where the data of new members comes from: a member or a backup.
type RecoverySource struct {
	// member that survived.
	Member string `json:"member,omitempty" protobuf:"bytes,1,opt,name=member"`
	// raftIndex up to which that member had committed when the plan was made.
	RaftIndex int64 `json:"raftIndex,omitempty" protobuf:"varint,2,opt,name=raftIndex"`
	// restore names the EtcdRestore that asked for it.
	Restore string `json:"restore,omitempty" protobuf:"bytes,3,opt,name=restore"`
	// backup is the backup location.
	Backup *BackupPlace `json:"backup,omitempty" protobuf:"bytes,4,opt,name=backup"`
	// pvc of a member that does not respond. If it is set, the pod of that member is stopped,
	// and the data is read from the PVC.
	PVC string `json:"pvc,omitempty" protobuf:"bytes,5,opt,name=pvc"`
}

// BackupPlace is the place of one backup, and how it is read.
type BackupPlace struct {
	// storageType of the store: S3, ABS, GCS, OSS or PersistentVolumeClaim.
	StorageType BackupStorageType `json:"storageType,omitempty" protobuf:"bytes,1,opt,name=storageType,casttype=BackupStorageType"`
	// The place in the store.
	RestoreSource `json:",inline" protobuf:"bytes,2,opt,name=restoreSource"`
	// decryption of an encrypted backup.
	Decryption *BackupDecryption `json:"decryption,omitempty" protobuf:"bytes,3,opt,name=decryption"`
	// sha256 of the snapshot that was verified, in hexadecimal. The snapshot that is
	// restored must have it.
	SHA256 string `json:"sha256,omitempty" protobuf:"bytes,4,opt,name=sha256"`
	// serviceAccountName of the pod that fetches it. Empty: the namespace's default.
	ServiceAccountName string `json:"serviceAccountName,omitempty" protobuf:"bytes,5,opt,name=serviceAccountName"`
	// env of the container that fetches it: HTTP_PROXY, HTTPS_PROXY and NO_PROXY.
	// +listType=atomic
	Env []corev1.EnvVar `json:"env,omitempty" protobuf:"bytes,6,rep,name=env"`
}

// RecoverySurvivor is a member that responds although the quorum is lost.
type RecoverySurvivor struct {
	// name of the member.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// raftIndex up to which it has committed.
	RaftIndex int64 `json:"raftIndex,omitempty" protobuf:"varint,2,opt,name=raftIndex"`
	// dbSize is the size of its database file in bytes.
	DBSize int64 `json:"dbSize,omitempty" protobuf:"varint,3,opt,name=dbSize"`
}

// IsPlannedCutover is true while a restore that a user has asked for replaces the members: they are going,
// and the recovery member, which has served a write, is about to serve clients.
func (r *RecoveryStatus) IsPlannedCutover() bool {
	return r != nil && r.Trigger == RecoveryTriggerRestore && (r.Phase == RecoveryPhaseCutover || r.Phase == RecoveryPhaseCleaning)
}

// IsInProgress is true for a recovery that has not come to an end.
func (r *RecoveryStatus) IsInProgress() bool {
	if r == nil {
		return false
	}
	switch r.Phase {
	case RecoveryPhasePending, RecoveryPhaseFilling, RecoveryPhaseCutover, RecoveryPhaseCleaning:
		return true
	case RecoveryPhaseSucceeded, RecoveryPhaseAbandoned:
		return false
	default:
		return false
	}
}
