// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EtcdRestore puts the data of a backup into a cluster, an existing or a new one.
type EtcdRestore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec says what to restore, and from where.
	Spec RestoreSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`
	// status is how the restore went. It is read only for users.
	Status RestoreStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EtcdRestoreList is a list of EtcdRestores.
type EtcdRestoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items is the list of restores.
	Items []EtcdRestore `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// RestoreSpec says what to restore, and from where.
type RestoreSpec struct {
	// backupStorageType of the store: S3, ABS, GCS, OSS or PersistentVolumeClaim.
	// Not together with backup.
	BackupStorageType BackupStorageType `json:"backupStorageType,omitempty" protobuf:"bytes,1,opt,name=backupStorageType,casttype=BackupStorageType"`
	// The place in the store.
	RestoreSource `json:",inline" protobuf:"bytes,2,opt,name=restoreSource"`
	// etcdCluster names the cluster that is restored: an existing one, in place, or
	// a new one, made from clusterTemplate.
	EtcdCluster EtcdClusterRef `json:"etcdCluster" protobuf:"bytes,3,opt,name=etcdCluster"`

	// backup names an EtcdBackup of the same namespace as the source.
	Backup *BackupReference `json:"backup,omitempty" protobuf:"bytes,4,opt,name=backup"`
	// clusterTemplate of a cluster that does not exist yet.
	ClusterTemplate *EtcdClusterTemplate `json:"clusterTemplate,omitempty" protobuf:"bytes,5,opt,name=clusterTemplate"`
	// revisionBump is added to the revision of the restored data, so that no client
	// of the old cluster sees time go back. Default: 0 for a new cluster. In place, the
	// default leads to at least 1000000000 above each revision that the cluster is known
	// to have had. Set it for a new cluster that clients of an earlier one use.
	RevisionBump *int64 `json:"revisionBump,omitempty" protobuf:"varint,6,opt,name=revisionBump"`
	// decryption of an encrypted backup.
	Decryption *BackupDecryption `json:"decryption,omitempty" protobuf:"bytes,7,opt,name=decryption"`
	// serviceAccountName of the pods that fetch the data, for stores that know a
	// workload by it. They get no token for Kubernetes. Empty: that of backup, or else
	// the namespace's default.
	ServiceAccountName string `json:"serviceAccountName,omitempty" protobuf:"bytes,8,opt,name=serviceAccountName"`

	// job says where and how the pods run that check the backup; its env is also that of
	// the container that fetches the data. Absent: that of backup, or else that of
	// spec.backup of the cluster. With backup, env, labels and annotations are always those of backup.
	Job *JobPolicy `json:"job,omitempty" protobuf:"bytes,20,opt,name=job"`
}

// BackupReference names an EtcdBackup, or one backup of a periodic one.
type BackupReference struct {
	// name of the EtcdBackup.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// revision of one backup in its history. Absent: the newest good one of the data that the cluster
	// has, and not an unconfirmed one if a confirmed one has as many writes. One whose dataDiffers is true only if it has
	// no other.
	Revision *int64 `json:"revision,omitempty" protobuf:"varint,2,opt,name=revision"`
}

// EtcdClusterTemplate is the cluster that a restore makes.
type EtcdClusterTemplate struct {
	// metadata of the cluster: labels and annotations are used.
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// spec of the cluster.
	Spec ClusterSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`
}

// RestorePhase is a one-word summary of a restore.
type RestorePhase string

// Values of RestorePhase.
const (
	// RestorePhaseVerifying: the backup is read and checked. Nothing has been changed.
	RestorePhaseVerifying RestorePhase = "Verifying"
	// RestorePhaseRestoring: the recovery member is filled with the data of the backup.
	RestorePhaseRestoring RestorePhase = "Restoring"
	// RestorePhaseStarting: the cluster cuts over to the restored data.
	RestorePhaseStarting RestorePhase = "Starting"
	// RestorePhaseSucceeded: the cluster has committed a write with the restored data.
	RestorePhaseSucceeded RestorePhase = "Succeeded"
	// RestorePhaseFailed: the restore has ended. The reason of the status says why, and whether
	// the cluster was changed.
	RestorePhaseFailed RestorePhase = "Failed"
)

// RestoreStatus is how a restore went.
type RestoreStatus struct {
	// succeeded is true once the restored cluster has served a write.
	// +optional
	Succeeded bool `json:"succeeded" protobuf:"varint,1,opt,name=succeeded"`
	// reason says why the restore failed.
	Reason string `json:"reason,omitempty" protobuf:"bytes,2,opt,name=reason"`

	// phase: Verifying, Restoring, Starting, Succeeded or Failed.
	Phase RestorePhase `json:"phase,omitempty" protobuf:"bytes,3,opt,name=phase,casttype=RestorePhase"`
	// observedGeneration is the generation of the spec that this status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,4,opt,name=observedGeneration"`
	// progress of the transfer that runs now.
	Progress *TransferProgress `json:"progress,omitempty" protobuf:"bytes,5,opt,name=progress"`
	// revision of the restored key space, before the bump.
	Revision int64 `json:"revision,omitempty" protobuf:"varint,6,opt,name=revision"`
	// startTime of the restore.
	StartTime *metav1.Time `json:"startTime,omitempty" protobuf:"bytes,7,opt,name=startTime"`
	// completionTime of the restore.
	CompletionTime *metav1.Time `json:"completionTime,omitempty" protobuf:"bytes,8,opt,name=completionTime"`
	// conditions say what is true of the restore now.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" protobuf:"bytes,9,rep,name=conditions"`
	// preRestoreBackup is the copy of the data that the cluster had, made before it was
	// replaced. Absent for a new cluster, and if no member was there to be copied.
	PreRestoreBackup *PreRestoreBackup `json:"preRestoreBackup,omitempty" protobuf:"bytes,10,opt,name=preRestoreBackup"`
}

// MaxPreRestoreBackupAge is how long ago a pre-restore backup may have been stored when the cluster gets the request, and
// when the members that serve are replaced: later writes are in no backup. It is longer than most restores take, so that
// these make one pre-restore backup. It counts from the end of the backup, so that one that takes longer is not made for ever.
const MaxPreRestoreBackupAge = 15 * time.Minute

// preRestoreBackupRequired is the condition of an EtcdRestore that replaces the data of a cluster only after a pre-restore
// backup; package planner/restore sets it.
const preRestoreBackupRequired = "PreRestoreBackupRequired"

// IsFresh is true if the backup was stored lately enough to stand for the data that is replaced now.
func (b *PreRestoreBackup) IsFresh(now time.Time) bool {
	return b != nil && now.Sub(b.Time.Time) <= MaxPreRestoreBackupAge
}

// ReplacesUnconfirmed is true if the pre-restore backup is of a member that no quorum confirmed, unless a user lets the
// restore replace the data without it. One of the old members may hold newer writes.
func (s *RestoreStatus) ReplacesUnconfirmed() bool {
	return s.PreRestoreBackup != nil && s.PreRestoreBackup.Unconfirmed && meta.IsStatusConditionTrue(s.Conditions, preRestoreBackupRequired)
}

// LacksPreRestoreBackup is true if members that serve must not be replaced now: a pre-restore backup is required, and none
// is fresh.
func (s *RestoreStatus) LacksPreRestoreBackup(now time.Time) bool {
	return meta.IsStatusConditionTrue(s.Conditions, preRestoreBackupRequired) && !s.PreRestoreBackup.IsFresh(now)
}

// HasPreRestoreBackup is true if a fresh pre-restore backup that a quorum confirmed has the data that is replaced now. One
// that a user does without has it not, even if an earlier one is fresh: the restore required another. Nor has one that a clock
// of the future has dated: the members may have accepted writes for as long since. Nor has one of members whose data
// differed: it has the data of one of them, which may be the wrong one.
func (s *RestoreStatus) HasPreRestoreBackup(now time.Time) bool {
	b := s.PreRestoreBackup
	return b.IsFresh(now) && b.Time.Sub(now) <= MaxPreRestoreBackupAge && !b.Unconfirmed && !b.DataDiffers && !meta.IsStatusConditionFalse(s.Conditions, preRestoreBackupRequired)
}

// PreRestoreBackup is a backup of the data that a restore in place has replaced.
type PreRestoreBackup struct {
	// backup is the name of the EtcdBackup that made it, which can be restored as any.
	Backup string `json:"backup" protobuf:"bytes,1,opt,name=backup"`
	// revision of the key space in it.
	Revision int64 `json:"revision,omitempty" protobuf:"varint,2,opt,name=revision"`
	// time at which it was complete.
	Time metav1.Time `json:"time,omitempty" protobuf:"bytes,3,opt,name=time"`
	// uri of the stored snapshot.
	URI string `json:"uri,omitempty" protobuf:"bytes,4,opt,name=uri"`
	// unconfirmed is true if no quorum confirmed that the member had every write. The PVCs of the old
	// members are then kept, because one of them may hold newer writes.
	Unconfirmed bool `json:"unconfirmed,omitempty" protobuf:"varint,5,opt,name=unconfirmed"`
	// raftIndex up to which the backup has the log of etcd. Members that have read more of it may have newer writes.
	RaftIndex int64 `json:"raftIndex,omitempty" protobuf:"varint,6,opt,name=raftIndex"`
	// dataDiffers is true if etcd reported that the data of the old members differed (alarm CORRUPT) before they were replaced.
	// Their PVCs are then kept, because the right data may be in one of them only.
	DataDiffers bool `json:"dataDiffers,omitempty" protobuf:"varint,7,opt,name=dataDiffers"`
}
