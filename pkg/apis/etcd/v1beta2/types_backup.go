// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EtcdBackup is one backup of an etcd cluster, or a series of them.
type EtcdBackup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec says what to back up, the backup location and when.
	Spec BackupSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`
	// status is how the backup went. It is read only for users.
	Status BackupStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EtcdBackupList is a list of EtcdBackups.
type EtcdBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items is the list of backups.
	Items []EtcdBackup `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// EtcdClusterRef names an EtcdCluster of the same namespace.
type EtcdClusterRef struct {
	// name of the EtcdCluster.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
}

// BackupSpec says what to back up, the backup location and when.
type BackupSpec struct {
	// etcdEndpoints of the cluster, such as http://example-client:2379. Exactly one
	// of etcdEndpoints and etcdCluster must be set.
	// +listType=atomic
	EtcdEndpoints []string `json:"etcdEndpoints,omitempty" protobuf:"bytes,1,rep,name=etcdEndpoints"`
	// storageType of the store: S3, ABS, GCS, OSS or PersistentVolumeClaim.
	StorageType BackupStorageType `json:"storageType" protobuf:"bytes,2,opt,name=storageType,casttype=BackupStorageType"`
	// backupPolicy says how often, how many and how long.
	BackupPolicy *BackupPolicy `json:"backupPolicy,omitempty" protobuf:"bytes,3,opt,name=backupPolicy"`
	// The place in the store.
	BackupSource `json:",inline" protobuf:"bytes,4,opt,name=backupSource"`
	// clientTLSSecret holds the client certificate for etcdEndpoints: etcd-client.crt,
	// etcd-client.key, etcd-client-ca.crt, or tls.crt, tls.key, ca.crt.
	ClientTLSSecret string `json:"clientTLSSecret,omitempty" protobuf:"bytes,5,opt,name=clientTLSSecret"`

	// etcdCluster names the cluster to back up; certificates come from it. Any
	// healthy member serves, followers first.
	EtcdCluster *EtcdClusterRef `json:"etcdCluster,omitempty" protobuf:"bytes,6,opt,name=etcdCluster"`
	// compression: Zstd or None. Default: Zstd with etcdCluster, None with etcdEndpoints.
	Compression Compression `json:"compression,omitempty" protobuf:"bytes,7,opt,name=compression,casttype=Compression"`
	// encryption of the stored backup.
	Encryption *BackupEncryption `json:"encryption,omitempty" protobuf:"bytes,8,opt,name=encryption"`
	// verify: Hash reads the stored copy back and compares its SHA-256. Checksum compares
	// the checksum that the store itself has computed of what it received, and reads back
	// where the store returns none. Restore reads back and restores in a scratch place.
	// Default: Checksum for the stores of AWS, Google, Microsoft and Alibaba themselves,
	// Hash for any other endpoint, for volumes, and with etcdEndpoints.
	Verify Verification `json:"verify,omitempty" protobuf:"bytes,9,opt,name=verify,casttype=Verification"`
	// serviceAccountName of the pods that move the data, for stores that know a workload
	// by it. They get no token for Kubernetes. Empty: the namespace's default.
	ServiceAccountName string `json:"serviceAccountName,omitempty" protobuf:"bytes,10,opt,name=serviceAccountName"`
	// hold, while true, keeps what this EtcdBackup has stored: its retention deletes no backup, its ttl
	// does not count, and the API server rejects its deletion. It can be set at any time. Only false
	// lifts the hold: an update that leaves the field out keeps it. Default: false.
	Hold *bool `json:"hold,omitempty" protobuf:"varint,11,opt,name=hold"`
	// heldSnapshots are the URIs of snapshots of a periodic EtcdBackup that its retention does not
	// delete, as status.uri and status.history name them. While one is listed, the API server rejects
	// the deletion of this EtcdBackup.
	// +listType=set
	HeldSnapshots []string `json:"heldSnapshots,omitempty" protobuf:"bytes,12,rep,name=heldSnapshots"`
	// ttl is how long a single EtcdBackup is kept after it has ended, such as 168h. Then the controller
	// deletes the object; what is in the store stays. An EtcdBackup is kept longer while hold is true,
	// while an open EtcdRestore needs it, and while no newer verified backup of its cluster exists.
	// Absent: the object is kept.
	TTL *Duration `json:"ttl,omitempty" protobuf:"bytes,13,opt,name=ttl"`

	// job says where and how the pods run that make the backup.
	Job *JobPolicy `json:"job,omitempty" protobuf:"bytes,20,opt,name=job"`
}

// BackupPolicy says how often, how many and how long.
type BackupPolicy struct {
	// timeoutInSecond bounds one attempt, in seconds. 0: no bound but progress.
	TimeoutInSecond int64 `json:"timeoutInSecond,omitempty" protobuf:"varint,1,opt,name=timeoutInSecond"`
	// backupIntervalInSecond makes the backup periodic, in seconds. 0: once.
	BackupIntervalInSecond int64 `json:"backupIntervalInSecond,omitempty" protobuf:"varint,2,opt,name=backupIntervalInSecond"`
	// maxBackups of a periodic backup that are kept. 0: no limit. The newest good
	// one is always kept.
	// +optional
	MaxBackups int32 `json:"maxBackups" protobuf:"varint,3,opt,name=maxBackups"`
	// schedule makes the backup periodic, in cron form. Not together with
	// backupIntervalInSecond.
	Schedule string `json:"schedule,omitempty" protobuf:"bytes,4,opt,name=schedule"`
	// timeZone of the schedule, a name of the IANA database. Default: UTC.
	TimeZone *string `json:"timeZone,omitempty" protobuf:"bytes,5,opt,name=timeZone"`
	// suspend makes no new backup of a periodic one while true.
	// +optional
	Suspend bool `json:"suspend" protobuf:"varint,6,opt,name=suspend"`
	// maxAge up to which backups of a periodic one are kept. Absent: no limit.
	MaxAge *Duration `json:"maxAge,omitempty" protobuf:"bytes,7,opt,name=maxAge"`
}

// BackupPhase is a one-word summary of a backup.
type BackupPhase string

// Values of BackupPhase.
const (
	// BackupPhasePending: no attempt has begun for the scheduled time.
	BackupPhasePending BackupPhase = "Pending"
	// BackupPhaseRunning: an attempt is under way.
	BackupPhaseRunning BackupPhase = "Running"
	// BackupPhaseSucceeded: the newest backup is stored and verified as spec.verify says.
	BackupPhaseSucceeded BackupPhase = "Succeeded"
	// BackupPhaseFailed: the last attempt failed. The condition Progressing says whether another
	// attempt follows.
	BackupPhaseFailed BackupPhase = "Failed"
)

// BackupStatus is how a backup went.
type BackupStatus struct {
	// succeeded is true if the last backup succeeded.
	// +optional
	Succeeded bool `json:"succeeded" protobuf:"varint,1,opt,name=succeeded"`
	// Reason says why the last backup failed.
	Reason string `json:"Reason,omitempty" protobuf:"bytes,2,opt,name=Reason"`
	// etcdVersion of the member that served the backup.
	EtcdVersion string `json:"etcdVersion,omitempty" protobuf:"bytes,3,opt,name=etcdVersion"`
	// etcdRevision of the key space in the last good backup.
	EtcdRevision int64 `json:"etcdRevision,omitempty" protobuf:"varint,4,opt,name=etcdRevision"`
	// lastSuccessDate of a good backup.
	LastSuccessDate metav1.Time `json:"lastSuccessDate,omitempty" protobuf:"bytes,5,opt,name=lastSuccessDate"`

	// phase: Pending, Running, Succeeded or Failed.
	Phase BackupPhase `json:"phase,omitempty" protobuf:"bytes,6,opt,name=phase,casttype=BackupPhase"`
	// observedGeneration is the generation of the spec that this status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,7,opt,name=observedGeneration"`
	// startTime of the last attempt.
	StartTime *metav1.Time `json:"startTime,omitempty" protobuf:"bytes,8,opt,name=startTime"`
	// completionTime of the last attempt.
	CompletionTime *metav1.Time `json:"completionTime,omitempty" protobuf:"bytes,9,opt,name=completionTime"`
	// uri of the last good backup.
	URI string `json:"uri,omitempty" protobuf:"bytes,10,opt,name=uri"`
	// size in bytes of the snapshot.
	SnapshotSize int64 `json:"size,omitempty" protobuf:"varint,11,opt,name=size"`
	// storedSize in bytes, after compression and encryption.
	StoredSize int64 `json:"storedSize,omitempty" protobuf:"varint,12,opt,name=storedSize"`
	// sha256 of the snapshot, in hexadecimal.
	SHA256 string `json:"sha256,omitempty" protobuf:"bytes,13,opt,name=sha256"`
	// member that served the backup.
	Member string `json:"member,omitempty" protobuf:"bytes,14,opt,name=member"`
	// verified is true if the stored copy was proved good; verifiedBy says how.
	Verified bool `json:"verified,omitempty" protobuf:"varint,15,opt,name=verified"`
	// progress of the attempt that runs now.
	Progress *TransferProgress `json:"progress,omitempty" protobuf:"bytes,16,opt,name=progress"`
	// attempts of the current backup so far.
	Attempts int32 `json:"attempts,omitempty" protobuf:"varint,17,opt,name=attempts"`
	// conditions say what is true of the backup now.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" protobuf:"bytes,18,rep,name=conditions"`
	// history of a periodic backup, newest first.
	// +listType=atomic
	History []BackupRecord `json:"history,omitempty" protobuf:"bytes,19,rep,name=history"`
	// lastScheduleTime is when the backup that this status is about was due.
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty" protobuf:"bytes,20,opt,name=lastScheduleTime"`
	// nextScheduleTime is when the next backup of a periodic one is due.
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty" protobuf:"bytes,21,opt,name=nextScheduleTime"`
	// verifiedBy is how the last good backup was proved: Hash, Checksum or Restore. It may
	// differ from verify in the spec, where the store or the backup does not allow that.
	VerifiedBy Verification `json:"verifiedBy,omitempty" protobuf:"bytes,22,opt,name=verifiedBy,casttype=Verification"`
	// unconfirmed is true if no quorum confirmed that the member, which served the last good backup, had every write. It
	// may have been cut off from the others, so the backup may lack the newest writes.
	Unconfirmed bool `json:"unconfirmed,omitempty" protobuf:"varint,23,opt,name=unconfirmed"`
	// raftIndex up to which the last good backup has the log of etcd; 0 if that is unknown.
	RaftIndex int64 `json:"raftIndex,omitempty" protobuf:"varint,24,opt,name=raftIndex"`
	// dataDiffers is true if etcd reported that the data of its members differed (alarm CORRUPT) when the last good backup
	// was made. It may have the wrong data.
	DataDiffers bool `json:"dataDiffers,omitempty" protobuf:"varint,25,opt,name=dataDiffers"`
}

// BackupRecord is one backup of a periodic EtcdBackup.
type BackupRecord struct {
	// startTime of the backup.
	StartTime metav1.Time `json:"startTime" protobuf:"bytes,1,opt,name=startTime"`
	// completionTime of the backup.
	CompletionTime *metav1.Time `json:"completionTime,omitempty" protobuf:"bytes,2,opt,name=completionTime"`
	// succeeded is true if it succeeded.
	Succeeded bool `json:"succeeded" protobuf:"varint,3,opt,name=succeeded"`
	// reason says why it failed.
	Reason string `json:"reason,omitempty" protobuf:"bytes,4,opt,name=reason"`
	// uri of the stored backup.
	URI string `json:"uri,omitempty" protobuf:"bytes,5,opt,name=uri"`
	// revision of the key space in it.
	Revision int64 `json:"revision,omitempty" protobuf:"varint,6,opt,name=revision"`
	// storedSize in bytes.
	StoredSize int64 `json:"storedSize,omitempty" protobuf:"varint,7,opt,name=storedSize"`
	// verified is true if the stored copy was proved good; verifiedBy says how.
	Verified bool `json:"verified,omitempty" protobuf:"varint,8,opt,name=verified"`
	// verifiedBy is how it was proved: Hash, Checksum or Restore.
	VerifiedBy Verification `json:"verifiedBy,omitempty" protobuf:"bytes,9,opt,name=verifiedBy,casttype=Verification"`
	// unconfirmed is true if no quorum confirmed that the member had every write.
	Unconfirmed bool `json:"unconfirmed,omitempty" protobuf:"varint,10,opt,name=unconfirmed"`
	// sha256 of the snapshot before compression and encryption. A restore that names the backup by its
	// revision compares it.
	SHA256 string `json:"sha256,omitempty" protobuf:"bytes,11,opt,name=sha256"`
	// dataDiffers is true if etcd reported that the data of its members differed (alarm CORRUPT) when it was made. It may
	// have the wrong data.
	DataDiffers bool `json:"dataDiffers,omitempty" protobuf:"varint,12,opt,name=dataDiffers"`
}
