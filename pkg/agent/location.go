// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Mount is a secret or a PVC that the agent's pod mounts. Exactly one of Secret and
// PVC is set.
type Mount struct {
	// Name of the volume.
	Name   string
	Secret string
	PVC    string
	Path   string
	// ReadOnly is true for secrets.
	ReadOnly bool
}

// Names of volumes.
const (
	credentialsVolume = "store-credentials"
	caVolume          = "store-ca"
	pvcVolume         = "store-volume"
)

// BackupStore returns the store of a backup, and what the agent's pod mounts for it.
func BackupStore(storageType v1beta2.BackupStorageType, source *v1beta2.BackupSource) (*Store, []Mount, error) {
	switch {
	case storageType == v1beta2.BackupStorageTypeS3 && source.S3 != nil:
		return s3Store(source.S3)
	case storageType == v1beta2.BackupStorageTypeABS && source.ABS != nil:
		store, mounts, err := secretStore(storageType, source.ABS.Path, source.ABS.Endpoint, source.ABS.ABSSecret, source.ABS.CASecret)
		return withClass(store, source.ABS.AccessTier), mounts, err
	case storageType == v1beta2.BackupStorageTypeGCS && source.GCS != nil:
		store, mounts, err := secretStore(storageType, source.GCS.Path, source.GCS.Endpoint, source.GCS.GCPSecret, source.GCS.CASecret)
		return withClass(store, source.GCS.StorageClass), mounts, err
	case storageType == v1beta2.BackupStorageTypeOSS && source.OSS != nil:
		return secretStore(storageType, source.OSS.Path, source.OSS.Endpoint, source.OSS.OSSSecret, source.OSS.CASecret)
	case storageType == v1beta2.BackupStorageTypePersistentVolumeClaim && source.PersistentVolumeClaim != nil:
		pvc := source.PersistentVolumeClaim
		store := &Store{Type: storageType, Bucket: pvc.ClaimName, Key: strings.Trim(pvc.Path, "/"), VolumeDir: VolumeDir}
		return store, []Mount{{Name: pvcVolume, PVC: pvc.ClaimName, Path: VolumeDir}}, nil
	default:
		return nil, nil, fmt.Errorf("%w store: storage type %q has no place", ErrInvalid, storageType)
	}
}

// RestoreStore is BackupStore for the source of a restore.
func RestoreStore(storageType v1beta2.BackupStorageType, source *v1beta2.RestoreSource) (*Store, []Mount, error) {
	return BackupStore(storageType, &v1beta2.BackupSource{
		S3: (*v1beta2.S3BackupSource)(source.S3), ABS: source.ABS, GCS: source.GCS, OSS: source.OSS,
		PersistentVolumeClaim: source.PersistentVolumeClaim,
	})
}

// withClass returns the store with its storage class; nil stays nil.
func withClass(store *Store, class string) *Store {
	if store != nil {
		store.StorageClass = class
	}
	return store
}

func s3Store(s3 *v1beta2.S3BackupSource) (*Store, []Mount, error) {
	store, mounts, err := secretStore(v1beta2.BackupStorageTypeS3, s3.Path, s3.Endpoint, s3.AWSSecret, s3.CASecret)
	if err != nil {
		return nil, nil, err
	}
	store.Region, store.ForcePathStyle = s3.Region, s3.ForcePathStyle
	store.InsecureSkipTLSVerify, store.ServerSideEncryption = s3.InsecureSkipTLSVerify, s3.ServerSideEncryption
	store.KMSKeyID, store.StorageClass = s3.KMSKeyID, s3.StorageClass
	return store, mounts, nil
}

func secretStore(storageType v1beta2.BackupStorageType, place, endpoint, secret, caSecret string) (*Store, []Mount, error) {
	bucket, key, ok := strings.Cut(place, "/")
	if !ok || bucket == "" || key == "" {
		return nil, nil, fmt.Errorf("%w store: path %q must have the form <bucket>/<key>", ErrInvalid, place)
	}
	store := &Store{Type: storageType, Bucket: bucket, Key: key, Endpoint: endpoint}
	var mounts []Mount
	if secret != "" {
		store.CredentialsDir = CredentialsDir
		mounts = append(mounts, Mount{Name: credentialsVolume, Secret: secret, Path: CredentialsDir, ReadOnly: true})
	}
	if caSecret != "" {
		store.CADir = CADir
		mounts = append(mounts, Mount{Name: caVolume, Secret: caSecret, Path: CADir, ReadOnly: true})
	}
	return store, mounts, nil
}

// fields name the stores in specs.
var fields = map[v1beta2.BackupStorageType]string{
	v1beta2.BackupStorageTypeS3:                    "s3",
	v1beta2.BackupStorageTypeABS:                   "abs",
	v1beta2.BackupStorageTypeGCS:                   "gcs",
	v1beta2.BackupStorageTypeOSS:                   "oss",
	v1beta2.BackupStorageTypePersistentVolumeClaim: "persistentVolumeClaim",
}

// Field names a field of the store's part of a spec, such as s3.caSecret.
func (s *Store) Field(name string) string { return fields[s.Type] + "." + name }

var schemes = map[v1beta2.BackupStorageType]string{
	v1beta2.BackupStorageTypeS3:                    "s3",
	v1beta2.BackupStorageTypeABS:                   "abs",
	v1beta2.BackupStorageTypeGCS:                   "gs",
	v1beta2.BackupStorageTypeOSS:                   "oss",
	v1beta2.BackupStorageTypePersistentVolumeClaim: "pvc",
}

// URI names an object of the store, for readers and for KeyOf.
func (s *Store) URI(key string) string {
	return schemes[s.Type] + "://" + s.Bucket + "/" + key
}

// KeyOf returns the key in a URI that a store of the same type and bucket made. The
// error matches ErrInvalid.
func (s *Store) KeyOf(uri string) (string, error) {
	prefix := s.URI("")
	key, ok := strings.CutPrefix(uri, prefix)
	if !ok || key == "" {
		return "", fmt.Errorf("%w uri %q: must begin with %s", ErrInvalid, uri, prefix)
	}
	return key, nil
}

// ProgressURL is where the agent in a pod with this address serves its progress.
func ProgressURL(host string, port int32) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	u := url.URL{Scheme: "http", Host: fmt.Sprintf("%s:%d", host, port), Path: ProgressPath}
	return u.String()
}
