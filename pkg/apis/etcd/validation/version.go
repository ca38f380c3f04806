// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"errors"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// maxVersionLength keeps "v" and the version within an image tag.
	maxVersionLength    = 127
	maxRepositoryLength = 255
)

// oldestVersion is the oldest version that the original etcd-operator ran.
var oldestVersion = semver.New(3, 1, 0, "", "")

// A SafePatch is the first patch release of a minor version of etcd 3 from which the step
// to the next minor version is safe, and why it is not before.
type SafePatch struct{ Version, Because string }

var safePatches = map[uint64]SafePatch{
	// etcd issue 19557: the promotion of a learner is kept in a store that 3.6 does not read.
	5: {"3.5.26", "a promoted learner can become a learner again in 3.6, and a removed member come back"},
	// etcd's guide for the upgrade to 3.7.
	6: {"3.6.11", "earlier patch releases are not safe beside members of 3.7"},
}

// SafePatchOf returns what members of a minor version of etcd 3 must run at least before
// the step to the next one; ok is false if any patch release will do.
func SafePatchOf(minor uint64) (patch SafePatch, ok bool) {
	patch, ok = safePatches[minor]
	return patch, ok
}

// isBefore is true if etcd of a version is older than a patch release. The suffix of a build makes it no older.
func isBefore(version *semver.Version, patch SafePatch) bool {
	release, err := semver.StrictNewVersion(v1beta2.EtcdRelease(version.String()))
	return err == nil && release.LessThan(semver.MustParse(patch.Version))
}

// parseVersion reads X.Y.Z with an optional leading v and an optional pre-release.
// Build metadata is rejected, because an image tag cannot hold a plus sign.
func parseVersion(version string) (*semver.Version, bool) {
	if len(version) > maxVersionLength {
		return nil, false
	}
	parsed, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v"))
	if err != nil || parsed.Metadata() != "" {
		return nil, false
	}
	return parsed, true
}

// ValidateVersion says what is wrong with a version that stands outside an object, such
// as in a flag.
func ValidateVersion(version string) error {
	errs := validateVersion(version, nil)
	if len(errs) == 0 {
		return nil
	}
	return errors.New(errs[0].ErrorBody())
}

func validateVersion(version string, path *field.Path) field.ErrorList {
	if version == "" {
		return field.ErrorList{field.Required(path, `name the version of etcd to run, such as "3.6.8"`)}
	}
	parsed, ok := parseVersion(version)
	if !ok {
		return field.ErrorList{invalid(path, version, `must be a version X.Y.Z, optionally with a pre-release, such as "3.6.8" or "3.6.0-rc.1"`)}
	}
	if parsed.Major() != oldestVersion.Major() || parsed.Minor() < oldestVersion.Minor() {
		return field.ErrorList{invalid(path, version, "must be a version of etcd 3 that is at least %s", oldestVersion)}
	}
	return nil
}

const (
	domainPart     = `[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?`
	repositoryPart = `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`
)

// repositoryPattern is the grammar of an image reference without tag and digest.
var repositoryPattern = regexp.MustCompile(
	`^((` + domainPart + `(\.` + domainPart + `)*|\[[a-fA-F0-9:]+\])(:[0-9]{1,5})?/)?` + repositoryPart + `(/` + repositoryPart + `)*$`)

func validateRepository(repository string, path *field.Path) field.ErrorList {
	if repository == "" {
		return field.ErrorList{field.Required(path, "name the image repository of etcd, such as registry.example.com/etcd")}
	}
	if len(repository) > maxRepositoryLength {
		return field.ErrorList{field.TooLong(path, "", maxRepositoryLength)}
	}
	if repositoryPattern.MatchString(repository) {
		return nil
	}
	return field.ErrorList{invalid(path, repository,
		"must be an image repository without tag and digest, such as registry.example.com/etcd; the tag is made from spec.version")}
}

// validateClusterDomain takes the form that is appended to host names as it stands.
func validateClusterDomain(domain string, path *field.Path) field.ErrorList {
	if domain == "" {
		return nil
	}
	rest, found := strings.CutPrefix(domain, ".")
	if !found {
		return field.ErrorList{invalid(path, domain, "must begin with a dot, such as .cluster.local, because it is appended to host names")}
	}
	return reasons(path, domain, utilvalidation.IsDNS1123Subdomain(rest))
}
