// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// labelMigration is on the objects of a migration. Its value is the name of the new cluster.
	labelMigration = "etcd.database.coreos.com/migration"
	// timeFormat is the part of the path of a backup that no other attempt has.
	timeFormat = "20060102T150405Z"
)

// Errors of a migration by snapshot.
var (
	// ErrOtherSource means that an object of the migration is about another etcd.
	ErrOtherSource = errors.New("an object with the name of this migration is about another etcd")
	// ErrReplaced means that the source has other data than before.
	ErrReplaced = errors.New("the data of the source was replaced, or the endpoints are of several etcd clusters")
	// ErrLocation means that the backup location cannot be used.
	ErrLocation = errors.New("the backup location cannot be used")
)

// Snapshot is a migration by snapshot: a backup of the source, a restore of it to a new
// cluster, and another backup, whose revision tells whether the source was written meanwhile.
type Snapshot struct {
	Namespace string
	// Name of the new EtcdCluster.
	Name string
	// Endpoints are client URLs of the source, which pods of the namespace reach.
	Endpoints []string
	// TLSSecret holds the client certificate for the endpoints; empty for http.
	TLSSecret string
	// Cluster is the template of the new cluster; only its spec, labels and annotations are used.
	Cluster v1beta2.EtcdClusterTemplate
	// Location says where the backups go and how they are made.
	Location v1beta2.BackupSpec
	// Started makes the paths of the backups differ from those of an earlier attempt.
	Started time.Time
}

// BeforeName is the name of the EtcdBackup that is restored.
func (s *Snapshot) BeforeName() string { return s.Name + "-migration-before" }

// RestoreName is the name of the EtcdRestore.
func (s *Snapshot) RestoreName() string { return s.Name + "-migration" }

// AfterName is the name of the EtcdBackup that reads the revision of the source again.
func (s *Snapshot) AfterName() string { return s.Name + "-migration-after" }

// Before returns the EtcdBackup that is restored.
func (s *Snapshot) Before() (*v1beta2.EtcdBackup, error) { return s.backup(s.BeforeName(), "before") }

// After returns the EtcdBackup that reads the revision of the source again. It holds every
// write that the restored cluster may miss.
func (s *Snapshot) After() (*v1beta2.EtcdBackup, error) { return s.backup(s.AfterName(), "after") }

func (s *Snapshot) backup(name, stage string) (*v1beta2.EtcdBackup, error) {
	b := &v1beta2.EtcdBackup{ObjectMeta: s.meta(name), Spec: *s.Location.DeepCopy()}
	b.Spec.EtcdEndpoints, b.Spec.ClientTLSSecret = slices.Clone(s.Endpoints), s.TLSSecret
	path := pathOf(&b.Spec.BackupSource)
	if path == nil {
		return nil, fmt.Errorf("%w: storageType %q has no source of this kind; give --pvc, or an EtcdBackup with a location", ErrLocation, b.Spec.StorageType)
	}
	// A backup of endpoints has the name that its path gives it, and must not replace another.
	last := s.Name + "-" + stage + "-" + s.Started.UTC().Format(timeFormat)
	*path = strings.TrimPrefix(strings.TrimSuffix(*path, "/")+"/"+last, "/")
	return b, nil
}

// pathOf returns the path of a backup location.
func pathOf(source *v1beta2.BackupSource) *string {
	switch {
	case source.PersistentVolumeClaim != nil:
		return &source.PersistentVolumeClaim.Path
	case source.S3 != nil:
		return &source.S3.Path
	case source.ABS != nil:
		return &source.ABS.Path
	case source.GCS != nil:
		return &source.GCS.Path
	case source.OSS != nil:
		return &source.OSS.Path
	default:
		return nil
	}
}

// Restore returns the EtcdRestore that makes the new cluster. The revision stays that of the
// source: while no write is missing, a client that watches continues where it was.
func (s *Snapshot) Restore() *v1beta2.EtcdRestore {
	return &v1beta2.EtcdRestore{
		ObjectMeta: s.meta(s.RestoreName()),
		Spec: v1beta2.RestoreSpec{
			EtcdCluster:     v1beta2.EtcdClusterRef{Name: s.Name},
			Backup:          &v1beta2.BackupReference{Name: s.BeforeName()},
			ClusterTemplate: s.Cluster.DeepCopy(),
			RevisionBump:    ptr.To[int64](0),
		},
	}
}

func (s *Snapshot) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: s.Namespace, Labels: map[string]string{labelMigration: s.Name}}
}

// Continues checks that a backup that exists is one of this migration, so that the migration
// can continue with it.
func (s *Snapshot) Continues(b *v1beta2.EtcdBackup) error {
	if slices.Equal(b.Spec.EtcdEndpoints, s.Endpoints) {
		return nil
	}
	return fmt.Errorf("%w: EtcdBackup %s/%s backs up %s. Continue that migration with its endpoints, or delete the objects of it:\n  %s",
		ErrOtherSource, b.Namespace, b.Name, strings.Join(b.Spec.EtcdEndpoints, ","), s.Delete())
}

// Delete is the command that deletes the objects of the migration and the new cluster.
func (s *Snapshot) Delete() string {
	return fmt.Sprintf("kubectl -n %s delete --ignore-not-found etcdrestore/%s etcdbackup/%s etcdbackup/%s etcdcluster/%s",
		s.Namespace, s.RestoreName(), s.BeforeName(), s.AfterName(), s.Name)
}

// Missing returns the first and the last revision that the source has and the new cluster has
// not; 0 and 0 if none is missing. It returns ErrReplaced if the revision of the source went back.
func Missing(before, after *v1beta2.EtcdBackup) (first, last int64, err error) {
	was, is := before.Status.EtcdRevision, after.Status.EtcdRevision
	switch {
	case is < was:
		return 0, 0, fmt.Errorf("%w: it was at revision %d and is at revision %d now", ErrReplaced, was, is)
	case is == was:
		return 0, 0, nil
	default:
		return was + 1, is, nil
	}
}
