// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"

	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	// defaultBump is far more than a cluster writes between its last known revision and the end of the restore.
	defaultBump = 1_000_000_000
	// unseenBump takes its place if no pre-restore backup tells the present revision. Each recovery since the last known
	// revision has raised it by defaultBump, and the status of the cluster shows only the last of them.
	unseenBump = 1000 * defaultBump
	// maxKnown keeps a revision that a status tells wrongly from an overflow of the sum.
	maxKnown = 1 << 62
)

// bump is added to the revision of the backup. By default the result is higher than each revision that the cluster has
// had. After a lower one, clients that watch miss events without an error, and keys get a mod revision again.
func (o *Observed) bump(revision int64) int64 {
	switch {
	case o.Restore.Spec.RevisionBump != nil:
		return *o.Restore.Spec.RevisionBump
	case o.fills(), !resources.BumpsRevision(resources.Version(o.Cluster)):
		return 0
	case o.hasPreRestoreBackup():
		return max(0, o.knownRevision()-revision) + defaultBump
	default:
		return max(0, o.knownRevision()-revision) + unseenBump
	}
}

// knownRevision is the highest revision that anything tells of the cluster; 0 if nothing does. An earlier restore has
// raised it far above that of each backup from before, and an older backup may follow.
func (o *Observed) knownRevision() int64 {
	status := &o.Cluster.Status
	known := storedRevision(o.Restore)
	for _, other := range o.Others {
		known = max(known, storedRevision(other))
	}
	for i := range status.Restores {
		if r := &status.Restores[i]; r.Time != nil {
			known = max(known, r.Revision+r.RevisionBump)
		}
	}
	if status.LastBackup != nil {
		known = max(known, status.LastBackup.Revision)
	}
	return min(known, maxKnown)
}

// storedRevision is the revision of the pre-restore backup of a restore; 0 if there is none.
func storedRevision(r *v1beta2.EtcdRestore) int64 {
	if c := r.Status.PreRestoreBackup; c != nil {
		return c.Revision
	}
	return 0
}

// goesBack says that revisions are given again; empty if none are, as far as it is known.
func (o *Observed) goesBack(revision int64) string {
	if back := resources.RevisionGoesBack(resources.Version(o.Cluster)); back != "" {
		return back
	}
	restored, known := revision+o.bump(revision), o.knownRevision()
	if restored >= known {
		return ""
	}
	return fmt.Sprintf("the cluster continues at revision %d after it has had %d (spec.revisionBump), so that revisions are given again: "+
		"restart clients that watch or that keep what they have read", restored, known)
}

// cannotBump says why the revision cannot be raised as the EtcdRestore asks for.
func (o *Observed) cannotBump() string {
	bump, version := ptr.Deref(o.Restore.Spec.RevisionBump, 0), ""
	if c := o.subject(); c != nil && (o.Cluster != nil || !o.followsVersion()) {
		version = resources.Version(c)
	} else if j := o.newest(); j != nil && j.Outcome != nil {
		version = j.Outcome.EtcdVersion
	}
	if bump == 0 || version == "" || resources.BumpsRevision(version) {
		return ""
	}
	return fmt.Sprintf("spec.revisionBump is %d and etcd %s cannot raise the revision when it restores: leave it out in another EtcdRestore, or restore into a newer version of etcd", bump, version)
}
