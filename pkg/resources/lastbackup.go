// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Why the last backup of a cluster is not restored unless a request names it.
var (
	ErrNoBackup          = errors.New("no backup of this cluster is known")
	ErrBackupNotVerified = errors.New("was not verified")
)

// Restorable returns why the last backup of a cluster, as LastBackup or a status has it,
// must not be restored where the request names no backup; nil if it may be.
func Restorable(last *v1beta2.LastBackup) error {
	switch {
	case last == nil:
		return ErrNoBackup
	case !last.Verified:
		return fmt.Errorf("the last backup, EtcdBackup %s, %w", last.Name, ErrBackupNotVerified)
	default:
		return nil
	}
}

// LastBackup returns the newest good backup of the data that the cluster has. It counts backups that were made since
// the cluster is there, because an EtcdBackup may tell of an earlier cluster of the same name. A restore replaces
// data. Until there is a newer backup, the backup that was restored is the last one; the backups of the replaced data
// would bring back what the restore has undone. What the status tells already is kept when the EtcdBackup is deleted,
// for the backup is still stored. Backups for which IsBackupFor is false do not count.
func LastBackup(c *v1beta2.EtcdCluster, backups []*v1beta2.EtcdBackup) *v1beta2.LastBackup {
	restore := LastRestore(c)
	last := c.Status.LastBackup.DeepCopy()
	if restore != nil && last != nil && !last.Time.After(restore.Time.Time) && (last.Name != restore.Backup || last.Revision != restore.Revision) {
		last = nil
	}
	for _, b := range backups {
		if found := newestFor(c, restore, b); found != nil && (last == nil || last.Time.Time.Before(found.Time.Time)) {
			last = found
		}
	}
	return last
}

// newestFor returns the newest backup of the cluster's data that b tells of, nil if it tells of none.
func newestFor(c *v1beta2.EtcdCluster, restore *v1beta2.ClusterRestore, b *v1beta2.EtcdBackup) *v1beta2.LastBackup {
	s := &b.Status
	newest := &v1beta2.LastBackup{Name: b.Name, Time: s.LastSuccessDate, Revision: s.EtcdRevision, Verified: s.Verified, VerifiedBy: s.VerifiedBy}
	isNew := !s.LastSuccessDate.IsZero() && !s.LastSuccessDate.Time.Before(c.CreationTimestamp.Time)
	switch {
	case BackupOf(b, c.Name) && isNew && (restore == nil || !lastGoodStart(s).Before(restore.Time.Time)):
		return newest
	case restore == nil || b.Name != restore.Backup:
		return nil
	case s.EtcdRevision == restore.Revision && !s.LastSuccessDate.IsZero() && !s.LastSuccessDate.After(restore.Time.Time):
		return newest
	}
	for i := range s.History {
		if r := &s.History[i]; r.Succeeded && r.Revision == restore.Revision && r.CompletionTime != nil && !r.CompletionTime.After(restore.Time.Time) {
			return &v1beta2.LastBackup{Name: b.Name, Time: *r.CompletionTime, Revision: r.Revision, Verified: r.Verified, VerifiedBy: r.VerifiedBy}
		}
	}
	return nil
}

// lastGoodStart returns when the last good backup began, the zero time if that is not known. The snapshot is not
// older than that.
func lastGoodStart(s *v1beta2.BackupStatus) time.Time {
	if s.Succeeded && s.StartTime != nil && s.CompletionTime.Equal(&s.LastSuccessDate) {
		return s.StartTime.Time
	}
	for i := range s.History {
		if r := &s.History[i]; r.Succeeded && r.CompletionTime.Equal(&s.LastSuccessDate) {
			return r.StartTime.Time
		}
	}
	return time.Time{}
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

// StoredAt returns where an EtcdBackup has stored a last backup; empty if it does not tell.
func StoredAt(b *v1beta2.EtcdBackup, last *v1beta2.LastBackup) string {
	if b.Name != last.Name {
		return ""
	}
	if b.Status.LastSuccessDate.Equal(&last.Time) {
		return b.Status.URI
	}
	for i := range b.Status.History {
		if r := &b.Status.History[i]; r.Succeeded && r.CompletionTime.Equal(&last.Time) {
			return r.URI
		}
	}
	return ""
}

// BackupOfRevision returns where an EtcdBackup has stored a backup that succeeded, with its hash and the version of etcd
// that it is of, which are empty if they are unknown. Everything is empty if there is none. A nil revision is the newest.
func BackupOfRevision(b *v1beta2.EtcdBackup, revision *int64) (uri, sha256, version string) {
	s := &b.Status
	if revision == nil || *revision == s.EtcdRevision {
		return s.URI, s.SHA256, s.EtcdVersion
	}
	for i := range s.History {
		if r := &s.History[i]; r.Succeeded && r.Revision == *revision && r.URI != "" {
			return r.URI, "", ""
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
	if b.Spec.EtcdCluster != nil {
		return b.Spec.EtcdCluster.Name
	}
	if name := clusterOfEndpoints(b); name != "" {
		return name
	}
	return strings.Join(b.Spec.EtcdEndpoints, ",")
}

// clusterOfEndpoints returns the name of the cluster whose client Service the
// endpoints name, "" if they do not name one.
func clusterOfEndpoints(b *v1beta2.EtcdBackup) string {
	found := ""
	for _, endpoint := range b.Spec.EtcdEndpoints {
		u, err := url.Parse(endpoint)
		if err != nil {
			return ""
		}
		service, rest, _ := strings.Cut(u.Hostname(), ".")
		namespace, _, _ := strings.Cut(rest, ".")
		name, ok := strings.CutSuffix(service, "-client")
		if !ok || name == "" || (namespace != "" && namespace != b.Namespace) || (found != "" && found != name) {
			return ""
		}
		found = name
	}
	return found
}
