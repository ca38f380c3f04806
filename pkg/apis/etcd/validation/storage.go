// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// maxBucketLength is that of the store with the longest bucket names.
	maxBucketLength = 222
	// maxKeyLength is that of every store.
	maxKeyLength = 1024
)

// place is what a backup's and a restore's source have in common.
type place struct {
	storageType     v1beta2.BackupStorageType
	storageTypePath *field.Path
	s3              *v1beta2.S3BackupSource
	abs             *v1beta2.ABSSource
	gcs             *v1beta2.GCSSource
	oss             *v1beta2.OSSSource
	pvc             *v1beta2.PersistentVolumeClaimSource
}

func backupPlace(storageType v1beta2.BackupStorageType, source *v1beta2.BackupSource, path *field.Path) place {
	return place{
		storageType: storageType, storageTypePath: path.Child("storageType"),
		s3: source.S3, abs: source.ABS, gcs: source.GCS, oss: source.OSS, pvc: source.PersistentVolumeClaim,
	}
}

func restorePlace(storageType v1beta2.BackupStorageType, source *v1beta2.RestoreSource, path *field.Path) place {
	return place{
		storageType: storageType, storageTypePath: path.Child("backupStorageType"),
		s3: (*v1beta2.S3BackupSource)(source.S3), abs: source.ABS, gcs: source.GCS, oss: source.OSS, pvc: source.PersistentVolumeClaim,
	}
}

// sourceField is one of the sources, with the field that it is given in.
type sourceField struct {
	storageType v1beta2.BackupStorageType
	name        string
	set         bool
}

func (p *place) fields() []sourceField {
	return []sourceField{
		{v1beta2.BackupStorageTypeS3, "s3", p.s3 != nil},
		{v1beta2.BackupStorageTypeABS, "abs", p.abs != nil},
		{v1beta2.BackupStorageTypeGCS, "gcs", p.gcs != nil},
		{v1beta2.BackupStorageTypeOSS, "oss", p.oss != nil},
		{v1beta2.BackupStorageTypePersistentVolumeClaim, "persistentVolumeClaim", p.pvc != nil},
	}
}

// endpoints returns the endpoint of each source that is given, by the source's field.
func (p *place) endpoints() map[string]string {
	endpoints := map[string]string{}
	if p.s3 != nil {
		endpoints["s3"] = p.s3.Endpoint
	}
	if p.abs != nil {
		endpoints["abs"] = p.abs.Endpoint
	}
	if p.gcs != nil {
		endpoints["gcs"] = p.gcs.Endpoint
	}
	if p.oss != nil {
		endpoints["oss"] = p.oss.Endpoint
	}
	return endpoints
}

// validatePlace checks that exactly the source that fits the storage type is given,
// and every source that is.
func validatePlace(p place, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	known := slices.ContainsFunc(p.fields(), func(f sourceField) bool { return f.storageType == p.storageType })
	switch {
	case p.storageType == "":
		errs = append(errs, field.Required(p.storageTypePath, "choose S3, ABS, GCS, OSS or PersistentVolumeClaim"))
	case !known:
		var types []v1beta2.BackupStorageType
		for _, f := range p.fields() {
			types = append(types, f.storageType)
		}
		errs = append(errs, validateEnum(p.storageType, p.storageTypePath, types...)...)
	}
	for _, f := range p.fields() {
		switch {
		case f.storageType == p.storageType && !f.set:
			errs = append(errs, field.Required(path.Child(f.name), fmt.Sprintf("must be set for storage type %s", p.storageType)))
		case known && f.storageType != p.storageType && f.set:
			errs = append(errs, forbidden(path.Child(f.name), "may not be set for storage type %s; remove it or change the storage type", p.storageType))
		}
	}
	return append(errs, validateSources(p, path)...)
}

func validateSources(p place, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p.s3 != nil {
		errs = append(errs, validateS3(p.s3, path.Child("s3"))...)
	}
	if abs, at := p.abs, path.Child("abs"); abs != nil {
		errs = append(errs, validateBucketPath(abs.Path, at.Child("path"))...)
		errs = append(errs, validateObjectName(abs.ABSSecret, at.Child("absSecret"))...)
		errs = append(errs, validateObjectName(abs.CASecret, at.Child("caSecret"))...)
		if abs.ABSSecret == "" && abs.Endpoint == "" {
			errs = append(errs, field.Required(at.Child("absSecret"),
				"name the Secret with storage-account and storage-key, or, to use the identity of the workload, name the account in endpoint: https://<account>.blob.core.windows.net"))
		}
		errs = append(errs, validateStoreEndpoint(abs.Endpoint, at.Child("endpoint"))...)
		errs = append(errs, validateEnum(abs.AccessTier, at.Child("accessTier"), "Hot", "Cool", "Cold")...)
		if abs.ABSSecret == "" {
			errs = append(errs, validateTokenEndpoint(v1beta2.BackupStorageTypeABS, abs.Endpoint, at.Child("endpoint"), "absSecret")...)
		}
	}
	if gcs, at := p.gcs, path.Child("gcs"); gcs != nil {
		errs = append(errs, validateBucketPath(gcs.Path, at.Child("path"))...)
		errs = append(errs, validateObjectName(gcs.GCPSecret, at.Child("gcpSecret"))...)
		errs = append(errs, validateObjectName(gcs.CASecret, at.Child("caSecret"))...)
		errs = append(errs, validateStoreEndpoint(gcs.Endpoint, at.Child("endpoint"))...)
		if gcs.StorageClass != "" && !classPattern.MatchString(gcs.StorageClass) {
			errs = append(errs, invalid(at.Child("storageClass"), gcs.StorageClass, "must be the name of a class in capital letters, such as NEARLINE"))
		}
		if gcs.GCPSecret == "" {
			errs = append(errs, validateTokenEndpoint(v1beta2.BackupStorageTypeGCS, gcs.Endpoint, at.Child("endpoint"), "gcpSecret")...)
		}
	}
	if oss, at := p.oss, path.Child("oss"); oss != nil {
		errs = append(errs, validateBucketPath(oss.Path, at.Child("path"))...)
		errs = append(errs, requireObjectName(oss.OSSSecret, at.Child("ossSecret"), "name the Secret with accessKeyID and accessKeySecret")...)
		errs = append(errs, validateObjectName(oss.CASecret, at.Child("caSecret"))...)
		errs = append(errs, validateStoreEndpoint(oss.Endpoint, at.Child("endpoint"))...)
	}
	if pvc, at := p.pvc, path.Child("persistentVolumeClaim"); pvc != nil {
		errs = append(errs, requireObjectName(pvc.ClaimName, at.Child("claimName"), "name the PersistentVolumeClaim")...)
		errs = append(errs, validateVolumePath(pvc.Path, at.Child("path"))...)
	}
	return errs
}

var (
	regionPattern     = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	encryptionPattern = regexp.MustCompile(`^[A-Za-z0-9:._-]{1,64}$`)
)

func validateS3(s3 *v1beta2.S3BackupSource, path *field.Path) field.ErrorList {
	errs := validateBucketPath(s3.Path, path.Child("path"))
	errs = append(errs, validateObjectName(s3.AWSSecret, path.Child("awsSecret"))...)
	errs = append(errs, validateObjectName(s3.CASecret, path.Child("caSecret"))...)
	errs = append(errs, validateStoreEndpoint(s3.Endpoint, path.Child("endpoint"))...)
	if s3.Region != "" && !regionPattern.MatchString(s3.Region) {
		errs = append(errs, invalid(path.Child("region"), s3.Region, "must be a region, such as eu-central-1"))
	}
	if s3.ServerSideEncryption != "" && !encryptionPattern.MatchString(s3.ServerSideEncryption) {
		errs = append(errs, invalid(path.Child("serverSideEncryption"), s3.ServerSideEncryption, "must be the name of an algorithm, such as AES256 or aws:kms"))
	}
	return append(errs, validateS3Class(s3, path)...)
}

func validateStoreEndpoint(endpoint string, path *field.Path) field.ErrorList {
	if endpoint == "" {
		return nil
	}
	return validateEndpoint(endpoint, path, endpointRules{schemeOptional: true, example: "https://store.example.com:9000"})
}

// bucketPattern is looser than any store's: each store has its own rules, and says so.
var bucketPattern = regexp.MustCompile(`^[A-Za-z0-9$][A-Za-z0-9._-]*$`)

func validateBucketPath(value string, path *field.Path) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "name the place as <bucket>/<key>")}
	}
	bucket, key, _ := strings.Cut(value, "/")
	switch {
	case strings.Contains(value, "://"):
		return field.ErrorList{invalid(path, value, "must have the form <bucket>/<key>, without a scheme")}
	case strings.HasPrefix(value, "/"):
		return field.ErrorList{invalid(path, value, "must begin with the bucket, not with a slash")}
	case key == "":
		return field.ErrorList{invalid(path, value, "must have the form <bucket>/<key>")}
	case len(bucket) > maxBucketLength || len(key) > maxKeyLength:
		return field.ErrorList{invalid(path, value, "must have a bucket of at most %d and a key of at most %d bytes", maxBucketLength, maxKeyLength)}
	case !bucketPattern.MatchString(bucket):
		return field.ErrorList{invalid(path, value, "must begin with the name of a bucket: letters, digits, dots, dashes and underscores")}
	}
	return validateSegments(key, value, path)
}

func validateVolumePath(value string, path *field.Path) field.ErrorList {
	if value == "" {
		return nil
	}
	if strings.HasPrefix(value, "/") {
		return field.ErrorList{invalid(path, value, "must be relative to the volume's root: remove the leading slash")}
	}
	if len(value) > maxKeyLength {
		return field.ErrorList{field.TooLong(path, "", maxKeyLength)}
	}
	return validateSegments(value, value, path)
}

// validateSegments keeps a key from leaving its place where it becomes a file name.
func validateSegments(key, value string, path *field.Path) field.ErrorList {
	if hasControl(key) || strings.Contains(key, `\`) {
		return field.ErrorList{invalid(path, value, "must not contain control characters or backslashes")}
	}
	for segment := range strings.SplitSeq(key, "/") {
		switch segment {
		case "":
			return field.ErrorList{invalid(path, value, "must not contain an empty part: remove the doubled or trailing slash")}
		case ".", "..":
			return field.ErrorList{invalid(path, value, `must not contain "." or ".." as a part`)}
		}
	}
	return nil
}

// validateTreatment checks how a backup is stored, which EtcdBackup and the backup
// policy of a cluster have in common.
func validateTreatment(compression v1beta2.Compression, encryption *v1beta2.BackupEncryption, verify v1beta2.Verification, path *field.Path) field.ErrorList {
	errs := validateEnum(compression, path.Child("compression"), v1beta2.CompressionNone, v1beta2.CompressionZstd)
	errs = append(errs, validateEnum(verify, path.Child("verify"), v1beta2.VerificationHash, v1beta2.VerificationChecksum, v1beta2.VerificationRestore)...)
	if encryption != nil {
		errs = append(errs, requireObjectName(encryption.AgeRecipientsSecret, path.Child("encryption", "ageRecipientsSecret"), "name the Secret with the recipients")...)
	}
	return errs
}

func validateClusterBackupPolicy(policy *v1beta2.ClusterBackupPolicy, path *field.Path) field.ErrorList {
	errs := validatePlace(backupPlace(policy.StorageType, &policy.BackupSource, path), path)
	errs = append(errs, validateSchedule(policy.Schedule, path.Child("schedule"))...)
	errs = append(errs, validateTimeZone(policy.TimeZone, path.Child("timeZone"))...)
	errs = append(errs, validateTreatment(policy.Compression, policy.Encryption, policy.Verify, path)...)
	errs = append(errs, validateObjectName(policy.ServiceAccountName, path.Child("serviceAccountName"))...)
	errs = append(errs, validateJobPolicy(policy.Job, path.Child("job"))...)
	errs = append(errs, validateTTL(policy.TTL, path.Child("ttl"))...)
	if retention, at := policy.Retention, path.Child("retention"); retention != nil {
		if retention.Count != nil && *retention.Count < 1 {
			errs = append(errs, field.Invalid(at.Child("count"), *retention.Count, "must be at least 1; leave it out for no limit"))
		}
		errs = append(errs, validateMaxAge(retention.Age, at.Child("age"))...)
	}
	return errs
}
