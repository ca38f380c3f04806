// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// Why the last backup of a cluster is not restored unless a request names it, or what decrypts it.
var (
	ErrNoBackup          = errors.New("no backup of this cluster is known")
	ErrBackupNotVerified = errors.New("was not verified")
	ErrBackupDataDiffers = errors.New("may have the wrong data: etcd reported the alarm CORRUPT when it was made")
	ErrBackupEncrypted   = errors.New("is encrypted, and only a request can name the Secret with the identities")
)

// Restorable returns why the last backup of a cluster, as LastBackup or a status has it, must not be restored where the
// request names no backup; nil if it may be. A request that decrypts names the identities.
func Restorable(last *v1beta2.LastBackup, decrypts bool) error {
	switch {
	case last == nil:
		return ErrNoBackup
	case !last.Verified:
		return fmt.Errorf("the last backup, EtcdBackup %s, %w", last.Name, ErrBackupNotVerified)
	case last.DataDiffers:
		return fmt.Errorf("the last backup, EtcdBackup %s, %w", last.Name, ErrBackupDataDiffers)
	case last.Encrypted && !decrypts:
		return fmt.Errorf("the last backup, EtcdBackup %s, %w", last.Name, ErrBackupEncrypted)
	default:
		return nil
	}
}

// maxAhead is how much later than the clock of the kube-apiserver a recorded time may be: its
// replicas differ a little. A later one was recorded when a clock was wrong.
const maxAhead = 5 * time.Minute

// IsFuture is true for a recorded time that says nothing, because a clock was wrong.
func IsFuture(t, now time.Time) bool { return t.After(now.Add(maxAhead)) }

// CreatedAt returns when a cluster was created; the zero time if nothing tells, because a clock was wrong then. What is
// not older than the cluster counts for it, so a time of the future would have nothing count until then.
func CreatedAt(c *v1beta2.EtcdCluster, now time.Time) time.Time {
	if IsFuture(c.CreationTimestamp.Time, now) {
		return time.Time{}
	}
	return c.CreationTimestamp.Time
}

// LastBackup returns the backup of the data that the cluster has that a restore takes, by manifest.Newest. It counts
// backups that were made since the cluster is there, because an EtcdBackup may tell of an earlier cluster of the same
// name. A restore replaces data. Until there is a newer backup, the backup that was restored is the last one; the backups
// of the replaced data would bring back what the restore has undone. What the status tells already is kept when the
// EtcdBackup is deleted, for the backup is still stored. Backups for which IsBackupFor is false do not count.
func LastBackup(c *v1beta2.EtcdCluster, backups []*v1beta2.EtcdBackup, now time.Time) *v1beta2.LastBackup {
	var all []goodBackup
	if known := c.Status.LastBackup; known != nil {
		if last := (goodBackup{LastBackup: *known, made: timeMade(known.Time.Time, time.Time{}, now)}); !last.isReplaced(c) {
			all = append(all, last)
		}
	}
	for _, b := range backups {
		for _, found := range goodBackups(b, now) {
			switch {
			case !found.isOf(c, b, now):
			case len(all) > 0 && found.Name == all[0].Name && found.Revision == all[0].Revision && found.Time.Equal(&all[0].Time):
				all[0] = found // the EtcdBackup says more than the status of the cluster
			default:
				all = append(all, found)
			}
		}
	}
	candidates := make([]manifest.Candidate, len(all))
	for i := range all {
		candidates[i] = all[i].asCandidate(c)
	}
	if i := manifest.Newest(candidates); i >= 0 {
		return all[i].DeepCopy()
	}
	return nil
}

// Supersedes is true if a restore takes the last backup of one EtcdBackup, and not that of the other, of the same
// cluster, which may be nil. Of two of one time the one with the later name counts as newer.
func Supersedes(other, b *v1beta2.EtcdBackup, c *v1beta2.EtcdCluster, now time.Time) bool {
	theirs, ours := newestGood(other, now), newestGood(b, now)
	if theirs == nil || ours == nil || !theirs.Verified || IsFuture(theirs.Time.Time, now) {
		return false
	}
	list := []manifest.Candidate{ours.asCandidate(c), theirs.asCandidate(c)}
	if other.Name > b.Name {
		slices.Reverse(list)
		return manifest.Newest(list) == 0
	}
	return manifest.Newest(list) == 1
}

// lastRecovery returns when the data of the cluster last went on in new members; zero if that is not known.
func lastRecovery(c *v1beta2.EtcdCluster) time.Time {
	if c == nil || c.Status.Recovery == nil || c.Status.Recovery.Phase != v1beta2.RecoveryPhaseSucceeded || c.Status.Recovery.CompletionTime == nil {
		return time.Time{}
	}
	return c.Status.Recovery.CompletionTime.Time
}

// LastRestore returns the newest restore whose data the cluster has taken over, nil if there was none.
func LastRestore(c *v1beta2.EtcdCluster) *v1beta2.ClusterRestore {
	for i := range c.Status.Restores {
		if r := &c.Status.Restores[i]; r.Time != nil {
			return r
		}
	}
	return nil
}

// IsBackupFor is true of an EtcdBackup that may hold data of the cluster: a backup of it, or the one that it was
// restored from.
func IsBackupFor(c *v1beta2.EtcdCluster, b *v1beta2.EtcdBackup) bool {
	restore := LastRestore(c)
	return BackupOf(b, c.Name) || restore != nil && restore.Backup == b.Name
}

// StoredAt returns where an EtcdBackup has stored a last backup, and the version of etcd that it is of if that is known;
// empty if it does not tell.
func StoredAt(b *v1beta2.EtcdBackup, last *v1beta2.LastBackup) (uri, version string) {
	if b.Name != last.Name {
		return "", ""
	}
	if b.Status.LastSuccessDate.Equal(&last.Time) {
		return b.Status.URI, b.Status.EtcdVersion
	}
	for i := range b.Status.History {
		if r := &b.Status.History[i]; r.Succeeded && r.CompletionTime.Equal(&last.Time) {
			return r.URI, ""
		}
	}
	return "", ""
}

// BackupOfRevision returns where an EtcdBackup has stored the backup that a restore takes, with its hash and the version
// of etcd that it is of, which are empty if they are unknown. Everything is empty if there is none. With a nil revision
// each of its backups counts. The choice is that of LastBackup. As long as the EtcdBackup has a backup of the data that
// the cluster has, no other counts: what a restore has replaced does not come back by a name. The cluster may be nil.
func BackupOfRevision(b *v1beta2.EtcdBackup, revision *int64, c *v1beta2.EtcdCluster, now time.Time) (uri, sha256, version string) {
	all := slices.DeleteFunc(goodBackups(b, now), func(g goodBackup) bool { return g.uri == "" || revision != nil && g.Revision != *revision })
	if c != nil && !IsBackupFor(c, b) {
		c = nil // its recoveries tell nothing of these backups
	}
	if c != nil {
		if current := slices.DeleteFunc(slices.Clone(all), func(g goodBackup) bool { return !g.isOf(c, b, now) }); len(current) > 0 {
			all = current
		}
	}
	candidates := make([]manifest.Candidate, len(all))
	for i := range all {
		candidates[i] = all[i].asCandidate(c)
	}
	if i := manifest.Newest(candidates); i >= 0 {
		return all[i].uri, all[i].sha256, all[i].version
	}
	return undated(b, revision)
}

// undated returns a backup whose time the status does not tell, as one of the original etcd-operator.
func undated(b *v1beta2.EtcdBackup, revision *int64) (uri, sha256, version string) {
	s := &b.Status
	if revision == nil || *revision == s.EtcdRevision {
		return s.URI, s.SHA256, s.EtcdVersion
	}
	for i := range s.History {
		if r := &s.History[i]; r.Succeeded && r.Revision == *revision {
			return r.URI, r.SHA256, ""
		}
	}
	return "", "", ""
}

// BackupOf is true of what counts as a backup of the cluster called name. A pre-restore backup
// holds data that a user has replaced.
func BackupOf(b *v1beta2.EtcdBackup, name string) bool {
	return SourceOf(b) == name && b.Annotations[AnnotationPreRestoreBackup] == ""
}

// SourceOf names what a backup reads, as far as is known: the cluster, also if the
// backup names the service of one, or else the endpoints.
func SourceOf(b *v1beta2.EtcdBackup) string {
	if name := b.Spec.ClusterIn(b.Namespace); name != "" {
		return name
	}
	return strings.Join(b.Spec.EtcdEndpoints, ",")
}
