// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// NormalizeVersion returns a version as the spec may write it ("v3.6.1") in the form
// that everything else uses ("3.6.1").
func NormalizeVersion(version string) string {
	return strings.TrimPrefix(strings.TrimSpace(version), "v")
}

// Version returns the desired version of the members of c.
func Version(c *v1beta2.EtcdCluster) string {
	if v := NormalizeVersion(c.Spec.Version); v != "" {
		return v
	}
	return v1beta2.DefaultVersion
}

// Image returns the image of the members: <repository>:v<version>, and @<digest> if the
// spec names one.
func Image(c *v1beta2.EtcdCluster) string {
	repository := c.Spec.Repository
	if repository == "" {
		repository = v1beta2.DefaultRepository
	}
	image := repository + ":v" + Version(c)
	if c.Spec.ImageDigest != "" {
		image += "@" + c.Spec.ImageDigest
	}
	return image
}

// features is what a release of etcd can do, as far as the pod depends on it.
type features struct {
	// metricsListener: --listen-metrics-urls, a listener without client
	// certificates that serves /metrics and health. Since 3.3.0.
	metricsListener bool
	// compactionMode: --auto-compaction-mode; the retention before was a number of
	// hours. Since 3.3.0.
	compactionMode bool
	// learners: members that do not vote. Since 3.4.0.
	learners bool
	// serializableHealth: /health?serializable=true asks the member alone; before,
	// the parameter is ignored and the response depends on the quorum. Since 3.5.3.
	serializableHealth bool
	// livez: /livez and /readyz. Since 3.4.29, 3.5.11 and 3.6.0.
	livez bool
	// peerSkipsNames: --peer-skip-client-san-verification without "experimental" before
	// it; both at once are rejected. Since 3.6.0.
	peerSkipsNames bool
	// revisionBump: its program can raise the revision of what it restores. Since 3.4.27,
	// 3.5.10 and 3.6.0.
	revisionBump bool
	// restoresNameless: its program restores for a name that the DNS does not know. Before,
	// it looks up the advertised name until the lookup succeeds. Assumed since 3.5.0; a
	// member that needs no name is not harmed by a name.
	restoresNameless bool
	// readyWhileFull: a member that serves is ready while the alarm NOSPACE is raised. Since 3.4.19 and
	// 3.5.2 (etcd-io/etcd pull requests 12880 and 13467).
	readyWhileFull bool
}

// RevisionGoesBack is the warning before a version of etcd restores in place of newer
// data: empty, unless its program cannot raise the revision meanwhile.
func RevisionGoesBack(version string) string {
	if BumpsRevision(version) {
		return ""
	}
	return "etcd " + NormalizeVersion(version) + " cannot raise the revision when it restores, so that revisions are given again: restart clients that watch or that keep what they have read"
}

// BumpsRevision is true if a version of etcd can raise the revision when it restores.
func BumpsRevision(version string) bool { return featuresOf(NormalizeVersion(version)).revisionBump }

// HasLearners is true if a version of etcd has members that do not vote.
func HasLearners(version string) bool { return featuresOf(NormalizeVersion(version)).learners }

// IsReadyWhileFull is true if the alarm NOSPACE does not make the pods of a version of etcd unready.
func IsReadyWhileFull(version string) bool {
	return featuresOf(NormalizeVersion(version)).readyWhileFull
}

// featuresOf returns what a version can do. A version that is no version (a tag of a
// private repository) is taken for a new one.
func featuresOf(version string) features {
	v, err := semver.StrictNewVersion(version)
	if err != nil {
		v, err = semver.NewVersion(version) // it reads 3.6, too, with a slow regular expression
	}
	if err != nil {
		return features{metricsListener: true, compactionMode: true, learners: true, serializableHealth: true, livez: true, peerSkipsNames: true, revisionBump: true, restoresNameless: true, readyWhileFull: true}
	}
	since := func(minor, patch uint64) bool {
		if v.Major() != 3 {
			return v.Major() > 3
		}
		return v.Minor() > minor || (v.Minor() == minor && v.Patch() >= patch)
	}
	is34 := v.Major() == 3 && v.Minor() == 4
	return features{
		metricsListener:    since(3, 0),
		compactionMode:     since(3, 0),
		learners:           since(4, 0),
		serializableHealth: since(5, 3),
		livez:              since(5, 11) || (is34 && since(4, 29)),
		peerSkipsNames:     since(6, 0),
		restoresNameless:   since(5, 0),
		readyWhileFull:     since(5, 2) || (is34 && since(4, 19)),
		revisionBump:       since(5, 10) || (is34 && since(4, 27)),
	}
}
