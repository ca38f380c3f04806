// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"regexp"
	"strings"
)

// preRelease is how etcd marks its own pre-releases, such as 3.7.0-rc.1. A member reports this suffix.
var preRelease = regexp.MustCompile(`^(alpha|beta|rc)\.[0-9]+`)

// EtcdRelease returns the release of etcd that the image of a version holds, as a member reports it. Any suffix but
// that of a pre-release of etcd names a build, such as in 3.5.21-k3s1 or 3.5.35-arm64: etcd there reports 3.5.21 or 3.5.35.
func EtcdRelease(version string) string {
	version, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(version), "v"), "+")
	numbers, suffix, _ := strings.Cut(version, "-")
	if suffix = preRelease.FindString(suffix); suffix != "" {
		return numbers + "-" + suffix
	}
	return numbers
}
