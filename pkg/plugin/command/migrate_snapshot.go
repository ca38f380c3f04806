// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/migration"
)

// snapshotSource are the flags of a migration by snapshot.
type snapshotSource struct {
	endpoints []string
	tlsSecret string
	pvc       string
	file      string
	size      int32
}

func (a *app) migrateSnapshotCommand() *cobra.Command {
	o, source := &migrateOptions{}, &snapshotSource{}
	cmd := &cobra.Command{
		Use:   "snapshot NAME",
		Short: "Copy the data of a running etcd into a new EtcdCluster",
		Long: `Backs up an etcd that another program runs, restores the backup to a new EtcdCluster NAME, and
checks that no write reached the source meanwhile. The source is only read. Stop all writers
before, and keep them stopped until the command ends. Without --yes and without a terminal the
command prints the plan and changes nothing.`,
		Example: `  kubectl etcd migrate snapshot prod --endpoints=http://etcd-0.etcd:2379,http://etcd-1.etcd:2379 --pvc backups
  kubectl etcd migrate snapshot prod --endpoints=https://etcd.old.svc:2379 --tls-secret etcd-client -f prod.yaml`,
		Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.migrateSnapshot(cmd.Context(), o, source, args[0])
		},
	}
	o.bind(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&source.endpoints, "endpoints", nil, "client URLs of the running etcd, which pods of the namespace reach")
	flags.StringVar(&source.tlsSecret, "tls-secret", "", "Secret with the client certificate for https endpoints: tls.crt, tls.key, ca.crt")
	flags.StringVar(&source.pvc, "pvc", "", "PVC that stores the backups, with a path behind a slash if they go below one")
	flags.StringVarP(&source.file, "filename", "f", "", "manifest with an EtcdCluster, whose spec the new cluster gets, and an EtcdBackup, whose spec has the backup location")
	flags.Int32Var(&source.size, "size", 0, "members of the new cluster; by default those of the manifest, or 3")
	return cmd
}

// snapshotMigration is a migration by snapshot, and how far it is.
type snapshotMigration struct {
	*app
	*target

	o       *migrateOptions
	plan    migration.Snapshot
	before  *v1beta2.EtcdBackup
	restore *v1beta2.EtcdRestore
	after   *v1beta2.EtcdBackup
}

func (a *app) migrateSnapshot(ctx context.Context, o *migrateOptions, source *snapshotSource, name string) error {
	m, err := a.newSnapshotMigration(o, source, name)
	if err != nil {
		return err
	}
	if err := m.find(ctx); err != nil {
		return err
	}
	if err := m.dryRun(ctx); err != nil {
		return err
	}
	for _, line := range m.describe() {
		fmt.Fprintln(a.Out, line)
	}
	confirmed, err := a.confirmMigration(ctx, o, "All writers must be stopped. Type the name of the new cluster to carry the plan out: ", name)
	if err != nil || !confirmed {
		return err
	}
	if err := m.carryOut(ctx); err != nil {
		return err
	}
	return m.compare()
}

// newSnapshotMigration reads the flags and the manifest.
func (a *app) newSnapshotMigration(o *migrateOptions, source *snapshotSource, name string) (*snapshotMigration, error) {
	if len(source.endpoints) == 0 {
		return nil, failure.Usage("--endpoints is missing; name the client URLs of the running etcd, such as http://etcd-0.etcd:2379")
	}
	manifest := &migration.Manifest{}
	if source.file != "" {
		file, err := os.Open(filepath.Clean(source.file))
		if err != nil {
			return nil, failure.Usage(fmt.Sprintf("--filename: %v", err))
		}
		defer func() { _ = file.Close() }() // it was opened for reading
		if manifest, err = migration.ReadManifest(file); err != nil {
			return nil, failure.Usage(fmt.Sprintf("--filename %s: %v", source.file, err))
		}
	}
	location, err := source.location(manifest)
	if err != nil {
		return nil, err
	}
	clients, err := a.connect()
	if err != nil {
		return nil, err
	}
	m := &snapshotMigration{app: a, o: o}
	m.target = &target{Clients: clients, cluster: &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: clients.Namespace, Name: name}}}
	m.plan = migration.Snapshot{
		Namespace: clients.Namespace, Name: name, Endpoints: source.endpoints, TLSSecret: cmp.Or(source.tlsSecret, location.ClientTLSSecret),
		Location: location, Started: a.Clock.Now(),
	}
	if c := manifest.Cluster; c != nil {
		m.plan.Cluster = v1beta2.EtcdClusterTemplate{ObjectMeta: metav1.ObjectMeta{Labels: c.Labels, Annotations: c.Annotations}, Spec: c.Spec}
	}
	if source.size > 0 {
		m.plan.Cluster.Spec.Replicas = &source.size
	} else if m.plan.Cluster.Spec.Replicas == nil {
		size := int32(defaultSize)
		m.plan.Cluster.Spec.Replicas = &size
	}
	return m, nil
}

// defaultSize is the number of members of a new cluster, as for an EtcdRestore without a template.
const defaultSize = 3

// location returns the backup location of the flags or of the manifest.
func (s *snapshotSource) location(manifest *migration.Manifest) (v1beta2.BackupSpec, error) {
	switch {
	case s.pvc != "" && manifest.Backup != nil:
		return v1beta2.BackupSpec{}, failure.Usage("--pvc and the EtcdBackup of the manifest both give a backup location; omit one of the two")
	case s.pvc != "":
		pvc, path, _ := strings.Cut(s.pvc, "/")
		return v1beta2.BackupSpec{
			StorageType:  v1beta2.BackupStorageTypePersistentVolumeClaim,
			BackupSource: v1beta2.BackupSource{PersistentVolumeClaim: &v1beta2.PersistentVolumeClaimSource{ClaimName: pvc, Path: path}},
		}, nil
	case manifest.Backup != nil:
		spec, err := manifest.Location()
		if err != nil {
			err = failure.Usage(fmt.Sprintf("--filename %s: %v", s.file, err))
		}
		return spec, err
	default:
		return v1beta2.BackupSpec{}, failure.Usage("the backup location is missing; name a PVC with --pvc, or give an EtcdBackup with --filename")
	}
}

// find reads what an earlier run of the command has created.
func (m *snapshotMigration) find(ctx context.Context) error {
	var err error
	if m.before, err = m.readBackup(ctx, m.plan.BeforeName()); err != nil {
		return err
	}
	if m.after, err = m.readBackup(ctx, m.plan.AfterName()); err != nil {
		return err
	}
	m.restore, err = m.Etcd.EtcdV1beta2().EtcdRestores(m.plan.Namespace).Get(ctx, m.plan.RestoreName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) && !failure.IsMissingAPI(err) {
		m.restore, err = nil, nil
	}
	if err != nil {
		return failure.With(err, m.right("get", "etcdrestores"))
	}
	if m.restore != nil {
		if m.before == nil {
			return failure.NotMet(fmt.Sprintf("EtcdRestore %s exists without EtcdBackup %s, so missing writes cannot be found. Begin again:\n  %s",
				m.restore.Name, m.plan.BeforeName(), m.plan.Delete()))
		}
		return nil
	}
	_, err = m.Etcd.EtcdV1beta2().EtcdClusters(m.plan.Namespace).Get(ctx, m.plan.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && !failure.IsMissingAPI(err):
		return nil
	case err != nil:
		return failure.With(err, m.right("get", "etcdclusters"))
	default:
		return failure.NotMet(fmt.Sprintf("EtcdCluster %s exists; a migration by snapshot makes a new cluster. Choose another name", m.target))
	}
}

// readBackup returns a backup of this migration, or nil.
func (m *snapshotMigration) readBackup(ctx context.Context, name string) (*v1beta2.EtcdBackup, error) {
	backup, err := m.Etcd.EtcdV1beta2().EtcdBackups(m.plan.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && !failure.IsMissingAPI(err):
		return nil, nil
	case err != nil:
		return nil, failure.With(err, m.right("get", "etcdbackups"))
	}
	if err := m.plan.Continues(backup); err != nil {
		return nil, failure.NotMet(err.Error())
	}
	return backup, nil
}

// dryRun has the API server check the objects that do not exist yet.
func (m *snapshotMigration) dryRun(ctx context.Context) error {
	if pvc := m.plan.Location.PersistentVolumeClaim; pvc != nil && m.before == nil {
		_, err := m.Kube.CoreV1().PersistentVolumeClaims(m.plan.Namespace).Get(ctx, pvc.ClaimName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("%w; the backups go to this PVC. Create the PVC, or name another PVC", err)
		}
		if err != nil {
			return failure.With(err, m.right("get", "persistentvolumeclaims"))
		}
	}
	if m.before == nil {
		if _, err := m.createBackup(ctx, m.plan.Before, true); err != nil {
			return err
		}
	}
	if m.restore == nil {
		if _, err := m.createRestore(ctx, true); err != nil {
			return err
		}
	}
	return nil
}

func (m *snapshotMigration) createBackup(ctx context.Context, build func() (*v1beta2.EtcdBackup, error), dryRun bool) (*v1beta2.EtcdBackup, error) {
	backup, err := build()
	if err != nil {
		return nil, failure.Usage(err.Error())
	}
	created, err := m.Etcd.EtcdV1beta2().EtcdBackups(m.plan.Namespace).Create(ctx, backup, metav1.CreateOptions{DryRun: dry(dryRun)})
	return created, failure.With(err, m.right("create", "etcdbackups"))
}

func (m *snapshotMigration) createRestore(ctx context.Context, dryRun bool) (*v1beta2.EtcdRestore, error) {
	created, err := m.Etcd.EtcdV1beta2().EtcdRestores(m.plan.Namespace).Create(ctx, m.plan.Restore(), metav1.CreateOptions{DryRun: dry(dryRun)})
	return created, failure.With(err, m.right("create", "etcdrestores"))
}
