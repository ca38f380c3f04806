// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// imageDigest is the form of digests that container runtimes check.
var imageDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func validateImageDigest(digest string, path *field.Path) field.ErrorList {
	if digest == "" || imageDigest.MatchString(digest) {
		return nil
	}
	return field.ErrorList{invalid(path, digest, `must be "sha256:" and 64 hexadecimal digits in lower case, as the registry shows it for the image of spec.version`)}
}

// validateDigestChange rejects another version with the digest of the one before: every
// member would go on with the old program under the new name.
func validateDigestChange(now, before *v1beta2.ClusterSpec, path *field.Path) field.ErrorList {
	same := strings.TrimPrefix(now.Version, "v") == strings.TrimPrefix(before.Version, "v")
	if now.ImageDigest == "" || same || now.ImageDigest != before.ImageDigest {
		return nil
	}
	return field.ErrorList{invalid(path, now.ImageDigest,
		"is the digest of the image of version %s; set the digest of the image of version %s together with spec.version, or remove spec.imageDigest", before.Version, now.Version)}
}
