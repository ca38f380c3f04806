// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// goodBackup is a backup that succeeded. Its Time is the one that was recorded.
type goodBackup struct {
	v1beta2.LastBackup
	// started is when it began, the zero time if that is not known. The snapshot is not older than that.
	started time.Time
	// made is when it was made, as far as the recorded times do not contradict each other; the zero time if none tells.
	made time.Time
	// uri, and the hash and the version of etcd if they are known.
	uri, sha256, version string
}

// Dated returns the history of an EtcdBackup, the newest record first. No record of it began later than the record before
// it, because the order of a history is that in which the backups were made. A clock that was ahead would make its record the
// newest one for as long as it was ahead, and let each new record expire at once. After a clock that was behind, the
// records from before that would count as newer.
func Dated(history []v1beta2.BackupRecord) []v1beta2.BackupRecord {
	history = slices.Clone(history)
	for i := 1; i < len(history); i++ {
		r, newer := &history[i], &history[i-1]
		if !newer.StartTime.IsZero() && r.StartTime.After(newer.StartTime.Time) {
			r.StartTime = newer.StartTime
			r.CompletionTime = newer.CompletionTime
		}
	}
	return history
}

// goodBackups returns what an EtcdBackup has stored, as far as its status tells, the newest first. Each was made before
// the one in front of it.
func goodBackups(b *v1beta2.EtcdBackup, now time.Time) []goodBackup {
	s, records, newest := &b.Status, slices.Clone(b.Status.History), -1
	isNewest := func(r v1beta2.BackupRecord) bool { return r.Succeeded && r.CompletionTime.Equal(&s.LastSuccessDate) }
	if !s.LastSuccessDate.IsZero() {
		if newest = slices.IndexFunc(records, isNewest); newest < 0 { // a single backup has no history
			if newest = slices.IndexFunc(records, func(r v1beta2.BackupRecord) bool { return r.Succeeded }); newest < 0 {
				newest = len(records)
			}
			records = slices.Insert(records, newest, asRecord(s))
		}
	}
	dated := Dated(records)
	made := timesMade(dated, now)
	var all []goodBackup
	for i := range records {
		r, started := &records[i], dated[i].StartTime.Time
		if IsFuture(started, now) {
			started = time.Time{}
		}
		if !r.Succeeded || r.CompletionTime == nil || newest >= 0 && i != newest && isNewest(*r) {
			continue
		}
		g := goodBackup{v1beta2.LastBackup{
			Name: b.Name, Time: *r.CompletionTime, Revision: r.Revision, Verified: r.Verified, VerifiedBy: r.VerifiedBy,
			Unconfirmed: r.Unconfirmed, DataDiffers: r.DataDiffers, Encrypted: manifest.IsNamedEncrypted(r.URI),
		}, started, made[i], r.URI, r.SHA256, ""}
		if i == newest {
			g = goodBackup{v1beta2.LastBackup{
				Name: b.Name, Time: s.LastSuccessDate, Revision: s.EtcdRevision, Verified: s.Verified, VerifiedBy: s.VerifiedBy,
				Unconfirmed: s.Unconfirmed, DataDiffers: s.DataDiffers, Encrypted: manifest.IsNamedEncrypted(s.URI),
			}, started, made[i], s.URI, s.SHA256, s.EtcdVersion}
		}
		all = append(all, g)
	}
	return all
}

// asRecord returns the record of the last good backup of a status whose history has none of it. When it began is
// overwritten when the next attempt begins.
func asRecord(s *v1beta2.BackupStatus) v1beta2.BackupRecord {
	r := v1beta2.BackupRecord{
		CompletionTime: s.LastSuccessDate.DeepCopy(), Succeeded: true, URI: s.URI, Revision: s.EtcdRevision, SHA256: s.SHA256,
		Verified: s.Verified, VerifiedBy: s.VerifiedBy, Unconfirmed: s.Unconfirmed, DataDiffers: s.DataDiffers,
	}
	if s.Succeeded && s.StartTime != nil && s.CompletionTime.Equal(&s.LastSuccessDate) {
		r.StartTime = *s.StartTime
	}
	return r
}

// timesMade returns when the backups of a dated history were made. Each is later than the next one. The node of the agent
// dates the end of a backup, and Kubernetes its beginning, so the ends may contradict the order of the history, too.
func timesMade(dated []v1beta2.BackupRecord, now time.Time) []time.Time {
	made := make([]time.Time, len(dated))
	var earliest time.Time // no backup in front was made before that
	for i := len(dated) - 1; i >= 0; i-- {
		r, end := &dated[i], dated[i].StartTime.Time
		if r.CompletionTime != nil {
			end = r.CompletionTime.Time
		}
		made[i] = later(timeMade(end, r.StartTime.Time, now), earliest)
		if begun := r.StartTime.Time; !IsFuture(begun, now) {
			earliest = later(earliest, begun)
		} else {
			earliest = made[i]
		}
	}
	for i := 1; i < len(made); i++ {
		if newer := made[i-1]; !newer.IsZero() && !made[i].Before(newer) {
			made[i] = newer.Add(-1)
		}
	}
	return made
}

// timeMade returns when a backup with a recorded end and beginning was made. A time of the future was recorded when a
// clock was wrong. When it began is by the clock of Kubernetes; zero if even that is not known.
func timeMade(end, begun, now time.Time) time.Time {
	switch {
	case !IsFuture(end, now):
		return end
	case !IsFuture(begun, now):
		return begun
	default:
		return time.Time{}
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// newestGood returns the last good backup of an EtcdBackup; nil if there is none.
func newestGood(b *v1beta2.EtcdBackup, now time.Time) *goodBackup {
	if all := goodBackups(b, now); len(all) > 0 && !b.Status.LastSuccessDate.IsZero() {
		return &all[0]
	}
	return nil
}

// isOf is true if it holds data that the cluster has: it was made of the cluster, since its last restore, or it is what
// was restored.
func (g *goodBackup) isOf(c *v1beta2.EtcdCluster, b *v1beta2.EtcdBackup, now time.Time) bool {
	restore := LastRestore(c)
	switch {
	case BackupOf(b, c.Name) && !g.made.Before(CreatedAt(c, now)) && (restore == nil || !g.started.Before(restore.Time.Time) && !g.isBelow(restore)):
		return true
	default:
		return restore != nil && g.Name == restore.Backup && g.Revision == restore.Revision && !g.made.After(restore.Time.Time)
	}
}

// isBelow is true of a backup whose revision is below all that the cluster has had since a restore raised it. No clock says
// so, and one that was set back may have dated the restore before such a backup.
func (g *goodBackup) isBelow(restore *v1beta2.ClusterRestore) bool {
	return restore.RevisionBump > 0 && g.Revision < restore.Revision+restore.RevisionBump
}

// isReplaced is true of a backup in the status of the cluster if a restore has replaced its data, or may have: nothing
// tells when a backup of the future was made.
func (g *goodBackup) isReplaced(c *v1beta2.EtcdCluster) bool {
	restore := LastRestore(c)
	return restore != nil && (!g.made.After(restore.Time.Time) || g.isBelow(restore)) && (g.Name != restore.Backup || g.Revision != restore.Revision)
}

// ReplacedBy returns the restore that has replaced the data of status.lastBackup, which the EtcdBackup has stored; nil if
// none has. The controller has not written the status since then. No clock says whether a recorded time is of the future.
func ReplacedBy(c *v1beta2.EtcdCluster, b *v1beta2.EtcdBackup) *v1beta2.ClusterRestore {
	last, restore, noClock := c.Status.LastBackup, LastRestore(c), time.Unix(1<<40, 0)
	if last == nil || restore == nil || last.Name == restore.Backup && last.Revision == restore.Revision {
		return nil
	}
	isLast := func(g goodBackup) bool { return g.Revision == last.Revision && g.Time.Equal(&last.Time) }
	all := goodBackups(b, noClock)
	if i := slices.IndexFunc(all, isLast); i >= 0 && !all[i].started.Before(restore.Time.Time) {
		return nil
	}
	return restore
}

// asCandidate returns what a choice between backups of the cluster looks at. A recovery may lose writes, so revisions from
// before and after it are not compared.
func (g *goodBackup) asCandidate(c *v1beta2.EtcdCluster) manifest.Candidate {
	candidate := manifest.Candidate{At: g.made, Revision: g.Revision, Doubtful: g.Unconfirmed || !g.Verified, Unconfirmed: g.Unconfirmed, DataDiffers: g.DataDiffers}
	begun := g.started
	if begun.IsZero() {
		begun = candidate.At
	}
	if at := lastRecovery(c); !at.IsZero() && !begun.Before(at) {
		candidate.Lineage = at.String()
	}
	return candidate
}
