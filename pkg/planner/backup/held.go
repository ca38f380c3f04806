// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Held returns the URIs of the backups that a user holds, and of those that a restore reads or may read, sorted. The
// retention of b deletes none of them: the data that a user wants back is often the oldest that is kept. Backups,
// restores and clusters are those of the namespace. What was stored before a recovery or a restore is held, too. EtcdBackups may share a place, and a restore waits for each Job that
// may delete what it reads, whichever EtcdBackup the restore names. A recovery continues after its EtcdRestore was
// deleted, and its cluster need not be the one that b is of. A name without a revision means the newest good backup; which one that was is known once it
// was verified.
func Held(b *v1beta2.EtcdBackup, backups []*v1beta2.EtcdBackup, restores []*v1beta2.EtcdRestore, clusters []*v1beta2.EtcdCluster, now time.Time) []string {
	held := slices.Clone(b.Spec.HeldSnapshots)
	if b.IsHeld() {
		for _, s := range storedBy(b) {
			held = append(held, s.uri)
		}
	}
	for _, r := range restores {
		if !isOpen(r) {
			continue
		}
		of := named(r, b, backups)
		switch from := r.Spec.Backup; {
		case from == nil:
			place := URIOf(r.Spec.BackupStorageType, &r.Spec.RestoreSource)
			if place != "" {
				held = append(held, place)
				held = append(held, newestFor(b, r, place)...)
			}
		case of == nil:
		case from.Revision != nil:
			held = append(held, ofRevision(of, *from.Revision)...)
		default:
			held = append(held, newestFor(of, r, "")...)
			chosen, _, _ := resources.BackupOfRevision(of, nil, clusterOf(r, clusters), now)
			held = append(held, chosen)
		}
	}
	for _, c := range clusters {
		if r := c.Status.Recovery; r.IsInProgress() && r.Source.Backup != nil {
			held = append(held, URIOf(r.Source.Backup.StorageType, &r.Source.Backup.RestoreSource))
		}
		if resources.SourceOf(b) == c.Name {
			held = slices.Concat(held, beforeLoss(b, c, now), beforeRestores(b, c, now))
		}
	}
	slices.Sort(held)
	return slices.DeleteFunc(slices.Compact(held), func(uri string) bool { return uri == "" })
}

// lossHold is how long backups from before a recovery or a restore are held. The member that the cluster went on from may
// have lost writes which only a backup has. After a restore the user may have to try an earlier one. And a backup follows
// each of them at once, which would take the place of the oldest. So a user has a week to look.
const lossHold = 7 * 24 * time.Hour

// beforeLoss returns the good backups of b from before the last recovery of its cluster from a survivor. They go
// down to one that is not doubtful: those after that may be of the survivor. None if there was no such recovery of late.
func beforeLoss(b *v1beta2.EtcdBackup, c *v1beta2.EtcdCluster, now time.Time) []string {
	r := c.Status.Recovery
	if r == nil || r.Phase == v1beta2.RecoveryPhaseAbandoned || r.Trigger == v1beta2.RecoveryTriggerRestore ||
		r.CompletionTime != nil && now.Sub(r.CompletionTime.Time) > lossHold {
		return nil
	}
	var uris []string
	for _, s := range storedBy(b) {
		before := s.at.Before(&r.RequestedAt)
		if !before && !s.mayBeEarlier {
			continue
		}
		if uris = append(uris, s.uri); before && s.isLast() {
			break
		}
	}
	return uris
}

// beforeRestores returns the good backups of b from before a restore of its cluster, which may be the next to try. Each is
// held for as long after the first restore that followed it: a cluster that is restored every night would otherwise keep
// all of them.
func beforeRestores(b *v1beta2.EtcdBackup, c *v1beta2.EtcdCluster, now time.Time) []string {
	ends := restoreEnds(c, now)
	var uris []string
	for _, s := range storedBy(b) {
		if len(ends) >= v1beta2.MaxClusterRestores && s.at.Time.Before(ends[0]) && now.Sub(s.at.Time) > lossHold {
			continue // the first restore that followed it may be one that the status no longer names
		}
		for _, end := range ends { // the first one first
			if (s.at.Time.Before(end) || s.mayBeEarlier) && now.Sub(end) <= lossHold {
				uris = append(uris, s.uri)
			}
			if s.at.Time.Before(end) {
				break
			}
		}
	}
	return uris
}

// restoreEnds returns until when the members stored data that a restore of the cluster has replaced, or replaces now, the
// first one first.
func restoreEnds(c *v1beta2.EtcdCluster, now time.Time) []time.Time {
	var ends []time.Time
	for i := range c.Status.Restores {
		if at := c.Status.Restores[i].Time; at != nil {
			ends = append(ends, at.Time)
		}
	}
	switch r := c.Status.Recovery; {
	case r == nil || r.Trigger != v1beta2.RecoveryTriggerRestore:
	case r.IsInProgress():
		ends = append(ends, now)
	case r.Phase == v1beta2.RecoveryPhaseSucceeded && r.CompletionTime != nil:
		ends = append(ends, r.CompletionTime.Time) // by the clock that dated the backups, if that was ahead
	}
	slices.SortFunc(ends, time.Time.Compare)
	return ends
}

// clusterOf returns the cluster of a restore; nil if there is none.
func clusterOf(r *v1beta2.EtcdRestore, clusters []*v1beta2.EtcdCluster) *v1beta2.EtcdCluster {
	if i := slices.IndexFunc(clusters, func(c *v1beta2.EtcdCluster) bool { return c.Name == r.Spec.EtcdCluster.Name }); i >= 0 {
		return clusters[i]
	}
	return nil
}

// named returns the EtcdBackup that a restore names: b, which is newer than its copy among the backups, or another;
// nil if there is none.
func named(r *v1beta2.EtcdRestore, b *v1beta2.EtcdBackup, backups []*v1beta2.EtcdBackup) *v1beta2.EtcdBackup {
	if r.Spec.Backup == nil {
		return nil
	}
	all := append([]*v1beta2.EtcdBackup{b}, backups...)
	if i := slices.IndexFunc(all, func(x *v1beta2.EtcdBackup) bool { return x.Name == r.Spec.Backup.Name }); i >= 0 {
		return all[i]
	}
	return nil
}

// endangered returns what is held and what a Job may delete; empty if there is nothing. While spec.hold is true that is
// everything, also what the status does not tell of, such as a backup of an attempt on a lost node.
func (o *Observed) endangered(j *Job) string {
	switch {
	case j.Pruner == nil:
		return ""
	case o.Backup.IsHeld():
		return "everything that this EtcdBackup has stored"
	}
	if i := slices.IndexFunc(o.Held, j.Pruner.Endangers); i >= 0 {
		return o.Held[i]
	}
	return ""
}

// isOpen is true for a restore that has not ended.
func isOpen(r *v1beta2.EtcdRestore) bool {
	return r.Status.Phase != v1beta2.RestorePhaseSucceeded && r.Status.Phase != v1beta2.RestorePhaseFailed
}

// stored is one good backup of an EtcdBackup.
type stored struct {
	uri      string
	revision int64
	at       metav1.Time
	// doubtful is true if a restore may take one before it instead: no quorum confirmed it, or its data differs.
	doubtful bool
	// mayBeLater is true if one that was stored before it has a later time, and mayBeEarlier if one that was stored after it
	// has an earlier time. One of the two clocks was wrong.
	mayBeLater, mayBeEarlier bool
}

// isLast is true if nothing that was stored before it need be held for the same reason.
func (s *stored) isLast() bool { return !s.doubtful && !s.mayBeLater }

// storedBy returns the good backups that the status tells of, the newest first. The history is in the order in which they
// were stored.
func storedBy(b *v1beta2.EtcdBackup) []stored {
	var all []stored
	var recorded []time.Time
	if s := &b.Status; s.URI != "" {
		all = append(all, stored{uri: s.URI, revision: s.EtcdRevision, at: s.LastSuccessDate, doubtful: s.Unconfirmed || s.DataDiffers})
		recorded = append(recorded, s.LastSuccessDate.Time)
	}
	dated := resources.Dated(b.Status.History)
	for i := range dated {
		if r := &dated[i]; r.Succeeded && r.URI != "" {
			all = append(all, stored{uri: r.URI, revision: r.Revision, at: metav1.NewTime(madeAt(r)), doubtful: r.Unconfirmed || r.DataDiffers})
			recorded = append(recorded, madeAt(&b.Status.History[i]))
		}
	}
	for i := range all {
		all[i].mayBeLater = slices.ContainsFunc(recorded[i+1:], recorded[i].Before)
		all[i].mayBeEarlier = slices.ContainsFunc(recorded[:i], recorded[i].After)
	}
	return all
}

func ofRevision(b *v1beta2.EtcdBackup, revision int64) []string {
	var uris []string
	for _, s := range storedBy(b) {
		if s.revision == revision {
			uris = append(uris, s.uri)
		}
	}
	return uris
}

// newestFor returns what a restore may read that asks for the newest backup below a place. Before the backup was
// verified that is each one since the restore was created, and those before it down to one that is not doubtful. Later
// it is those of them that have its revision, and the newest one in case it is verified again. So what a Job keeps that
// was created since then stays enough while the Job runs, and the Job is not ended because of the restore.
func newestFor(b *v1beta2.EtcdBackup, r *v1beta2.EtcdRestore, place string) []string {
	all := slices.DeleteFunc(storedBy(b), func(s stored) bool { return !strings.HasPrefix(s.uri, place) })
	if len(all) == 0 {
		return nil
	}
	var since, verified []string
	for _, s := range all {
		since = append(since, s.uri)
		if s.revision == r.Status.Revision {
			verified = append(verified, s.uri)
		}
		if s.at.Before(&r.CreationTimestamp) && s.isLast() {
			break
		}
	}
	switch {
	case r.Status.Revision == 0:
		return since
	case len(verified) == 0: // the clocks of the nodes differ
		verified = ofRevision(b, r.Status.Revision)
	}
	return append(verified, all[0].uri)
}

// URIOf returns the URI of a place; empty if it cannot be used.
func URIOf(storageType v1beta2.BackupStorageType, source *v1beta2.RestoreSource) string {
	store, _, err := agent.RestoreStore(storageType, source)
	if err != nil {
		return ""
	}
	return store.URI(strings.Trim(store.Key, "/"))
}
