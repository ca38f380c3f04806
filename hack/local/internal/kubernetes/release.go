// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUnsupported marks a release that the local cluster cannot run.
var ErrUnsupported = errors.New("not a supported minor version of Kubernetes")

// Words that select a release by its place among the supported ones.
const (
	newest = "newest"
	oldest = "oldest"
)

// Release is one release of Kubernetes.
type Release struct {
	// Version is the full version, such as "1.37.2".
	Version string
}

// releases are the supported ones, oldest first: one patch release of each minor version.
// Each has a module in the directory build, which pins the same version.
var releases = []Release{{"1.32.2"}, {"1.33.13"}, {"1.34.4"}, {"1.35.4"}, {"1.36.3"}, {"1.37.2"}}

// Releases returns the supported releases, oldest first.
func Releases() []Release { return slices.Clone(releases) }

// Newest is the release of a cluster whose creator does not name one.
func Newest() Release { return releases[len(releases)-1] }

// Oldest is the oldest supported release.
func Oldest() Release { return releases[0] }

// Parse returns the release of a minor version such as "1.32", or of one of the words
// "newest" and "oldest".
func Parse(minor string) (Release, error) {
	switch minor {
	case newest:
		return Newest(), nil
	case oldest:
		return Oldest(), nil
	}
	var minors []string
	for _, r := range releases {
		if r.Minor() == minor {
			return r, nil
		}
		minors = append(minors, r.Minor())
	}
	return Release{}, fmt.Errorf("%q: %w: use %s, %s or %s", minor, ErrUnsupported, strings.Join(minors, ", "), newest, oldest)
}

// Minor is the minor version, such as "1.37".
func (r Release) Minor() string {
	major, rest, _ := strings.Cut(r.Version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	return major + "." + minor
}

// Module is the directory, below build, of the module that pins the release.
func (r Release) Module() string { return "kubernetes-" + r.Minor() }

// Component is the directory of the built programs in the cache.
func (r Release) Component() string { return "kubernetes-v" + r.Version }

// MarshalText writes the minor version: a cluster stays on it, not on a patch release.
func (r Release) MarshalText() ([]byte, error) { return []byte(r.Minor()), nil }

// UnmarshalText reads a minor version.
func (r *Release) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*r = parsed
	return nil
}
