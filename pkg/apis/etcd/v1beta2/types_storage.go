// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

// BackupStorageType is a kind of store for backups.
type BackupStorageType string

// Values of BackupStorageType.
const (
	// BackupStorageTypeS3 is any store that speaks the S3 protocol.
	BackupStorageTypeS3 BackupStorageType = "S3"
	// BackupStorageTypeABS is Azure Blob Storage.
	BackupStorageTypeABS BackupStorageType = "ABS"
	// BackupStorageTypeGCS is Google Cloud Storage.
	BackupStorageTypeGCS BackupStorageType = "GCS"
	// BackupStorageTypeOSS is Alibaba Cloud Object Storage Service.
	BackupStorageTypeOSS BackupStorageType = "OSS"
	// BackupStorageTypePersistentVolumeClaim is a volume of the same namespace.
	BackupStorageTypePersistentVolumeClaim BackupStorageType = "PersistentVolumeClaim"
)

// BackupSource says where a backup is stored. Exactly the field that fits the
// storage type must be set.
type BackupSource struct {
	// s3 for storage type S3.
	S3 *S3BackupSource `json:"s3,omitempty" protobuf:"bytes,1,opt,name=s3"`
	// abs for storage type ABS.
	ABS *ABSSource `json:"abs,omitempty" protobuf:"bytes,2,opt,name=abs"`
	// gcs for storage type GCS.
	GCS *GCSSource `json:"gcs,omitempty" protobuf:"bytes,3,opt,name=gcs"`
	// oss for storage type OSS.
	OSS *OSSSource `json:"oss,omitempty" protobuf:"bytes,4,opt,name=oss"`
	// persistentVolumeClaim for storage type PersistentVolumeClaim.
	PersistentVolumeClaim *PersistentVolumeClaimSource `json:"persistentVolumeClaim,omitempty" protobuf:"bytes,5,opt,name=persistentVolumeClaim"`
}

// RestoreSource says where a backup is read from. Exactly the field that fits the
// storage type must be set.
type RestoreSource struct {
	// s3 for storage type S3.
	S3 *S3RestoreSource `json:"s3,omitempty" protobuf:"bytes,1,opt,name=s3"`
	// abs for storage type ABS.
	ABS *ABSSource `json:"abs,omitempty" protobuf:"bytes,2,opt,name=abs"`
	// gcs for storage type GCS.
	GCS *GCSSource `json:"gcs,omitempty" protobuf:"bytes,3,opt,name=gcs"`
	// oss for storage type OSS.
	OSS *OSSSource `json:"oss,omitempty" protobuf:"bytes,4,opt,name=oss"`
	// persistentVolumeClaim for storage type PersistentVolumeClaim.
	PersistentVolumeClaim *PersistentVolumeClaimSource `json:"persistentVolumeClaim,omitempty" protobuf:"bytes,5,opt,name=persistentVolumeClaim"`
}

// S3BackupSource is a place in a store that speaks the S3 protocol.
type S3BackupSource struct {
	// path is <bucket>/<key>. A periodic backup appends to the key.
	Path string `json:"path" protobuf:"bytes,1,opt,name=path"`
	// awsSecret names a secret with the files "credentials" and "config" of the AWS
	// tools (profile default), which hold keys or a role to assume with keys. Empty: the
	// identity of the workload.
	AWSSecret string `json:"awsSecret,omitempty" protobuf:"bytes,2,opt,name=awsSecret"`
	// endpoint of the store, such as https://s3.example.com. A scheme that is missing is
	// https. Empty: AWS.
	Endpoint string `json:"endpoint,omitempty" protobuf:"bytes,3,opt,name=endpoint"`
	// forcePathStyle asks for <endpoint>/<bucket>/<key> instead of a host per bucket.
	// +optional
	ForcePathStyle bool `json:"forcePathStyle" protobuf:"varint,4,opt,name=forcePathStyle"`
	// region of the bucket. Empty: the one of the secret's config.
	Region string `json:"region,omitempty" protobuf:"bytes,5,opt,name=region"`
	// caSecret names a secret whose ca.crt signs the endpoint's certificate. It replaces
	// the public certificate authorities.
	CASecret string `json:"caSecret,omitempty" protobuf:"bytes,6,opt,name=caSecret"`
	// insecureSkipTLSVerify accepts any certificate of the endpoint.
	InsecureSkipTLSVerify bool `json:"insecureSkipTLSVerify,omitempty" protobuf:"varint,7,opt,name=insecureSkipTLSVerify"`
	// serverSideEncryption that the store uses, such as AES256 or aws:kms.
	ServerSideEncryption string `json:"serverSideEncryption,omitempty" protobuf:"bytes,8,opt,name=serverSideEncryption"`
	// kmsKeyID of the key with which the store encrypts, for a serverSideEncryption of
	// aws:kms or aws:kms:dsse. Empty: the one that the bucket or the account has.
	KMSKeyID string `json:"kmsKeyID,omitempty" protobuf:"bytes,9,opt,name=kmsKeyID"`
	// storageClass of the stored objects, such as STANDARD_IA. Classes from which nothing
	// is read at once are rejected. Empty: the one that the store uses by default.
	StorageClass string `json:"storageClass,omitempty" protobuf:"bytes,10,opt,name=storageClass"`
}

// S3RestoreSource is a backup in a store that speaks the S3 protocol. Its fields
// are those of S3BackupSource, so that the one converts to the other.
type S3RestoreSource struct {
	// path is <bucket>/<key>.
	Path string `json:"path" protobuf:"bytes,1,opt,name=path"`
	// awsSecret names a secret with the files "credentials" and "config" of the AWS
	// tools (profile default), which hold keys or a role to assume with keys. Empty: the
	// identity of the workload.
	AWSSecret string `json:"awsSecret,omitempty" protobuf:"bytes,2,opt,name=awsSecret"`
	// endpoint of the store, such as https://s3.example.com. A scheme that is missing is
	// https. Empty: AWS.
	// +optional
	Endpoint string `json:"endpoint" protobuf:"bytes,3,opt,name=endpoint"`
	// forcePathStyle asks for <endpoint>/<bucket>/<key> instead of a host per bucket.
	// +optional
	ForcePathStyle bool `json:"forcePathStyle" protobuf:"varint,4,opt,name=forcePathStyle"`
	// region of the bucket. Empty: the one of the secret's config.
	Region string `json:"region,omitempty" protobuf:"bytes,5,opt,name=region"`
	// caSecret names a secret whose ca.crt signs the endpoint's certificate. It replaces
	// the public certificate authorities.
	CASecret string `json:"caSecret,omitempty" protobuf:"bytes,6,opt,name=caSecret"`
	// insecureSkipTLSVerify accepts any certificate of the endpoint.
	InsecureSkipTLSVerify bool `json:"insecureSkipTLSVerify,omitempty" protobuf:"varint,7,opt,name=insecureSkipTLSVerify"`
	// serverSideEncryption with which the object was stored; not needed for reading.
	ServerSideEncryption string `json:"serverSideEncryption,omitempty" protobuf:"bytes,8,opt,name=serverSideEncryption"`
	// kmsKeyID with which the object was stored; not needed for reading.
	KMSKeyID string `json:"kmsKeyID,omitempty" protobuf:"bytes,9,opt,name=kmsKeyID"`
	// storageClass with which the object was stored; not needed for reading.
	StorageClass string `json:"storageClass,omitempty" protobuf:"bytes,10,opt,name=storageClass"`
}

// ABSSource is a place in Azure Blob Storage.
type ABSSource struct {
	// path is <container>/<key>.
	Path string `json:"path" protobuf:"bytes,1,opt,name=path"`
	// absSecret names a secret with storage-account, storage-key and optionally cloud.
	// Without storage-key it is the identity of the workload that is used. Empty: the
	// same, and endpoint names the account.
	// +optional
	ABSSecret string `json:"absSecret" protobuf:"bytes,2,opt,name=absSecret"`
	// endpoint replaces the account's own one, such as that of an emulator. Without
	// absSecret it is needed: https://<account>.blob.core.windows.net. A scheme that is
	// missing is https.
	Endpoint string `json:"endpoint,omitempty" protobuf:"bytes,3,opt,name=endpoint"`
	// caSecret names a secret whose ca.crt signs the endpoint's certificate. It replaces
	// the public certificate authorities.
	CASecret string `json:"caSecret,omitempty" protobuf:"bytes,4,opt,name=caSecret"`
	// accessTier of the stored blobs: Hot, Cool or Cold. Empty: that of the account. It has
	// no effect on reading.
	AccessTier string `json:"accessTier,omitempty" protobuf:"bytes,5,opt,name=accessTier"`
}

// GCSSource is a place in Google Cloud Storage.
type GCSSource struct {
	// path is <bucket>/<key>.
	Path string `json:"path" protobuf:"bytes,1,opt,name=path"`
	// gcpSecret names a secret with access-token, or with credentials.json of the type
	// service_account or authorized_user. Empty: the identity of the workload.
	GCPSecret string `json:"gcpSecret,omitempty" protobuf:"bytes,2,opt,name=gcpSecret"`
	// endpoint replaces Google's own one, such as that of an emulator. A scheme that is
	// missing is https. The identity of the workload and credentials.json are used with
	// hosts of Google only.
	Endpoint string `json:"endpoint,omitempty" protobuf:"bytes,3,opt,name=endpoint"`
	// caSecret names a secret whose ca.crt signs the endpoint's certificate. It replaces
	// the public certificate authorities.
	CASecret string `json:"caSecret,omitempty" protobuf:"bytes,4,opt,name=caSecret"`
	// storageClass of the stored objects, such as NEARLINE. Empty: that of the bucket. It has
	// no effect on reading.
	StorageClass string `json:"storageClass,omitempty" protobuf:"bytes,5,opt,name=storageClass"`
}

// OSSSource is a place in Alibaba Cloud Object Storage Service.
type OSSSource struct {
	// path is <bucket>/<key>.
	Path string `json:"path" protobuf:"bytes,1,opt,name=path"`
	// ossSecret names a secret with accessKeyID and accessKeySecret.
	OSSSecret string `json:"ossSecret" protobuf:"bytes,2,opt,name=ossSecret"`
	// endpoint of the region. A scheme that is missing is https. Default:
	// https://oss-cn-hangzhou.aliyuncs.com.
	Endpoint string `json:"endpoint,omitempty" protobuf:"bytes,3,opt,name=endpoint"`
	// caSecret names a secret whose ca.crt signs the endpoint's certificate. It replaces
	// the public certificate authorities.
	CASecret string `json:"caSecret,omitempty" protobuf:"bytes,4,opt,name=caSecret"`
}

// PersistentVolumeClaimSource is a place on a volume of the same namespace.
type PersistentVolumeClaimSource struct {
	// claimName of the PVC.
	ClaimName string `json:"claimName" protobuf:"bytes,1,opt,name=claimName"`
	// path below the volume's root. Default: the root.
	Path string `json:"path,omitempty" protobuf:"bytes,2,opt,name=path"`
}

// Compression is how a stored backup is compressed.
type Compression string

// Values of Compression.
const (
	// CompressionNone stores the snapshot as etcd sends it.
	CompressionNone Compression = "None"
	// CompressionZstd compresses the snapshot with Zstandard.
	CompressionZstd Compression = "Zstd"
)

// Verification is how a backup is proved good once it is stored.
type Verification string

// Values of Verification.
const (
	// VerificationHash reads the stored copy and compares its SHA-256.
	VerificationHash Verification = "Hash"
	// VerificationChecksum compares the checksum that the store has computed of what it
	// received with that of what was sent. A store that returns none is read as with Hash.
	VerificationChecksum Verification = "Checksum"
	// VerificationRestore restores the stored copy in a scratch place.
	VerificationRestore Verification = "Restore"
)

// BackupEncryption encrypts a stored backup.
type BackupEncryption struct {
	// ageRecipientsSecret names a secret whose key "recipients" lists age recipients,
	// one a line.
	AgeRecipientsSecret string `json:"ageRecipientsSecret" protobuf:"bytes,1,opt,name=ageRecipientsSecret"`
}

// BackupDecryption decrypts a stored backup.
type BackupDecryption struct {
	// ageIdentitiesSecret names a secret whose key "identities" lists age identities,
	// one a line.
	AgeIdentitiesSecret string `json:"ageIdentitiesSecret" protobuf:"bytes,1,opt,name=ageIdentitiesSecret"`
}

// BackupRetention says which backups are kept. The newest good one always is.
type BackupRetention struct {
	// count of backups that are kept at most. Absent: no limit.
	Count *int32 `json:"count,omitempty" protobuf:"varint,1,opt,name=count"`
	// age up to which backups are kept. Absent: no limit.
	Age *Duration `json:"age,omitempty" protobuf:"bytes,2,opt,name=age"`
}

// ClusterBackupPolicy says where backups of a cluster go and when they are made.
type ClusterBackupPolicy struct {
	// storageType of the store: S3, ABS, GCS, OSS or PersistentVolumeClaim.
	StorageType BackupStorageType `json:"storageType" protobuf:"bytes,1,opt,name=storageType,casttype=BackupStorageType"`
	// The place in the store.
	BackupSource `json:",inline" protobuf:"bytes,2,opt,name=backupSource"`
	// schedule in cron form. Empty: only on request.
	Schedule string `json:"schedule,omitempty" protobuf:"bytes,3,opt,name=schedule"`
	// timeZone of the schedule, a name of the IANA database. Default: UTC.
	TimeZone *string `json:"timeZone,omitempty" protobuf:"bytes,4,opt,name=timeZone"`
	// retention of the scheduled backups.
	Retention *BackupRetention `json:"retention,omitempty" protobuf:"bytes,5,opt,name=retention"`
	// compression: Zstd (default) or None.
	Compression Compression `json:"compression,omitempty" protobuf:"bytes,6,opt,name=compression,casttype=Compression"`
	// encryption of the stored backup.
	Encryption *BackupEncryption `json:"encryption,omitempty" protobuf:"bytes,7,opt,name=encryption"`
	// verify: Hash reads the stored copy back and compares its SHA-256. Checksum compares
	// the checksum that the store itself has computed of what it received, and reads back
	// where the store returns none. Restore reads back and restores in a scratch place.
	// Default: Checksum for the stores of AWS, Google, Microsoft and Alibaba themselves,
	// Hash for any other endpoint and for volumes.
	Verify Verification `json:"verify,omitempty" protobuf:"bytes,8,opt,name=verify,casttype=Verification"`
	// serviceAccountName of the pods that move the data, for stores that know a workload
	// by it. They get no token for Kubernetes. Empty: the namespace's default.
	ServiceAccountName string `json:"serviceAccountName,omitempty" protobuf:"bytes,9,opt,name=serviceAccountName"`
	// ttl of the EtcdBackups that requests to /backup make, and of pre-restore backups: how long each is
	// kept after it has ended, such as 168h. Scheduled backups have retention instead. Absent: they are
	// kept.
	TTL *Duration `json:"ttl,omitempty" protobuf:"bytes,10,opt,name=ttl"`

	// job says where and how the pods run that make the backups. Restores take it where
	// neither they nor the EtcdBackup say anything else. Its labels and annotations are not for
	// pods that use a Secret or a ServiceAccount that this policy does not name.
	Job *JobPolicy `json:"job,omitempty" protobuf:"bytes,20,opt,name=job"`
}

// TransferProgress is how far a transfer has come.
type TransferProgress struct {
	// bytes moved so far.
	Bytes int64 `json:"bytes" protobuf:"varint,1,opt,name=bytes"`
	// totalBytes that are expected, if it is known.
	TotalBytes int64 `json:"totalBytes,omitempty" protobuf:"varint,2,opt,name=totalBytes"`
}
