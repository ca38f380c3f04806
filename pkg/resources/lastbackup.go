// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

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

// LastBackup returns the newest good backup that was made since the cluster is there:
// an EtcdBackup may tell of an earlier cluster of the same name. What the status tells
// already is kept when the EtcdBackup is deleted, for the backup is still stored. The
// backups are those for which BackupOf is true.
func LastBackup(c *v1beta2.EtcdCluster, backups []*v1beta2.EtcdBackup) *v1beta2.LastBackup {
	last := c.Status.LastBackup.DeepCopy()
	for _, b := range backups {
		at := b.Status.LastSuccessDate
		if at.IsZero() || at.Time.Before(c.CreationTimestamp.Time) {
			continue
		}
		if last == nil || last.Time.Time.Before(at.Time) {
			last = &v1beta2.LastBackup{
				Name: b.Name, Time: at, Revision: b.Status.EtcdRevision, Verified: b.Status.Verified, VerifiedBy: b.Status.VerifiedBy,
			}
		}
	}
	return last
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
