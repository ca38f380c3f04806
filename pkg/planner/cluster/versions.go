// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/lru"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
)

// knownVersions holds versions that were read before: one decision reads the same few hundreds
// of times. Nothing changes a version after it was read.
var knownVersions = lru.New(256)

// parse returns nil for a version that is unknown or cannot be read; validation
// keeps the latter out of specs.
func parse(v string) *version.Version {
	if v == "" {
		return nil
	}
	if value, found := knownVersions.Get(v); found {
		if known, ok := value.(*version.Version); ok {
			return known
		}
	}
	parsed, err := version.ParseSemantic(strings.TrimPrefix(v, "v"))
	if err != nil {
		return nil
	}
	knownVersions.Add(v, parsed)
	return parsed
}

// step is true if a cluster of version low may be moved to target: etcd moves up one
// minor version at a time.
func step(low, target *version.Version) bool {
	return target.Major() == low.Major() && target.Minor() >= low.Minor() && target.Minor() <= low.Minor()+1
}

func newest(versions ...*version.Version) *version.Version {
	var result *version.Version
	for _, v := range versions {
		if v != nil && (result == nil || result.LessThan(v)) {
			result = v
		}
	}
	return result
}

func oldest(versions ...*version.Version) *version.Version {
	var result *version.Version
	for _, v := range versions {
		if v != nil && (result == nil || v.LessThan(result)) {
			result = v
		}
	}
	return result
}

// podVersion returns what the pod was made for, or nil.
func podVersion(p *Pod) *version.Version {
	if p == nil {
		return nil
	}
	return parse(p.Version)
}

// pvcVersion returns what was last to run on the volume, or nil.
func pvcVersion(c *PVC) *version.Version {
	if c == nil {
		return nil
	}
	return parse(c.Version)
}

// tooEarly says which patch release members must run before the step to another minor
// version; ok is false if the one that they run will do.
func tooEarly(low, target *version.Version) (patch validation.SafePatch, ok bool) {
	if target.Minor() <= low.Minor() {
		return patch, false
	}
	patch, bound := validation.SafePatchOf(uint64(low.Minor()))
	return patch, bound && parse(v1beta2.EtcdRelease(low.String())).LessThan(parse(patch.Version))
}

// isSameRelease is true if etcd of both versions reports the same. That is how what a member reports is compared with
// what was declared: the tag of an image may say more.
func isSameRelease(a, b *version.Version) bool {
	switch {
	case a == nil || b == nil || a.Major() != b.Major() || a.Minor() != b.Minor() || a.Patch() != b.Patch():
		return false
	default:
		return a.PreRelease() == b.PreRelease() || v1beta2.EtcdRelease(a.String()) == v1beta2.EtcdRelease(b.String())
	}
}

// isSameVersion is true if both name the same image. It is for versions that were declared.
func isSameVersion(v string, target *version.Version) bool {
	parsed := parse(v)
	return parsed != nil && parsed.EqualTo(target)
}
