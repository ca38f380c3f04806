// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// maxKMSKey is the length of the longest name of a key that AWS takes, in bytes.
const maxKMSKey = 2048

var (
	// classPattern is looser than any store's: each has classes of its own, and says so.
	classPattern = regexp.MustCompile(`^[A-Z0-9_-]{1,64}$`)
	// kmsKeyPattern is that of IDs, ARNs and aliases, of at most maxKMSKey bytes.
	kmsKeyPattern = regexp.MustCompile(`^[A-Za-z0-9:/_.-]+$`)
)

// frozenClasses give nothing back before it was requested hours ago.
var frozenClasses = map[string]bool{"GLACIER": true, "DEEP_ARCHIVE": true}

// validateS3Class checks how a store that speaks S3 keeps objects.
func validateS3Class(s3 *v1beta2.S3BackupSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch at := path.Child("storageClass"); {
	case s3.StorageClass == "":
	case !classPattern.MatchString(s3.StorageClass):
		errs = append(errs, invalid(at, s3.StorageClass, "must be the name of a class in capital letters, such as STANDARD_IA"))
	case frozenClasses[s3.StorageClass]:
		errs = append(errs, invalid(at, s3.StorageClass,
			"is a class whose objects cannot be read at once, and a backup is read back before it counts; choose another class, such as GLACIER_IR"))
	}
	switch at := path.Child("kmsKeyID"); {
	case s3.KMSKeyID == "":
	case len(s3.KMSKeyID) > maxKMSKey || !kmsKeyPattern.MatchString(s3.KMSKeyID):
		errs = append(errs, invalid(at, s3.KMSKeyID, "must be the ID, the ARN or the alias of a key"))
	case !strings.HasPrefix(s3.ServerSideEncryption, "aws:kms"):
		errs = append(errs, forbidden(at, "needs serverSideEncryption: aws:kms or aws:kms:dsse; set that, or remove the key"))
	}
	return errs
}
