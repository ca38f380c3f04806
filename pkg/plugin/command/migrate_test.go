// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/plugintest"
)

// migrated is an API server with a controller whose backups and restores succeed at once.
type migrated struct {
	*plugintest.Server

	t *testing.T
	// revisions of the source, one for each backup.
	revisions map[string]int64
	// failed is the name of an object that fails.
	failed string
	// bodies of the objects that were created, by name.
	bodies map[string]string
}

const migrationNamespace = "/apis/etcd.database.coreos.com/v1beta2/namespaces/prod/"

func newMigrated(t *testing.T, before, after int64) *migrated {
	t.Helper()
	m := &migrated{Server: plugintest.New(t), t: t, bodies: map[string]string{}, revisions: map[string]int64{"new-migration-before": before, "new-migration-after": after}}
	m.Put("/api/v1/namespaces/prod/persistentvolumeclaims/backups", &corev1.PersistentVolumeClaim{})
	m.Server.On(http.MethodPost, migrationNamespace+"etcdbackups", func(r *http.Request, body []byte) any {
		b := &v1beta2.EtcdBackup{}
		if err := json.Unmarshal(body, b); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		if r.URL.Query().Get("dryRun") == "" {
			m.bodies[b.Name] = string(body)
		}
		return b
	})
	m.Server.On(http.MethodPost, migrationNamespace+"etcdrestores", func(r *http.Request, body []byte) any {
		restore := &v1beta2.EtcdRestore{}
		if err := json.Unmarshal(body, restore); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		if r.URL.Query().Get("dryRun") == "" {
			m.bodies[restore.Name] = string(body)
		}
		return restore
	})
	for name := range m.revisions {
		m.Server.On(http.MethodGet, migrationNamespace+"etcdbackups/"+name, func(*http.Request, []byte) any { return m.backup(name) })
	}
	m.Server.On(http.MethodGet, migrationNamespace+"etcdrestores/new-migration", func(*http.Request, []byte) any {
		if m.bodies["new-migration"] == "" {
			return apierrors.NewNotFound(v1beta2.Resource("etcdrestores"), "new-migration")
		}
		restore := &v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "new-migration"}}
		restore.Status.Phase, restore.Status.Revision = v1beta2.RestorePhaseSucceeded, m.revisions["new-migration-before"]
		if m.failed == "new-migration" {
			restore.Status.Phase, restore.Status.Reason = v1beta2.RestorePhaseFailed, "the quota is too small"
		}
		return restore
	})
	return m
}

func (m *migrated) backup(name string) any {
	body, ok := m.bodies[name]
	if !ok {
		return apierrors.NewNotFound(v1beta2.Resource("etcdbackups"), name)
	}
	b := &v1beta2.EtcdBackup{}
	if err := json.Unmarshal([]byte(body), b); err != nil {
		m.t.Error(err)
	}
	b.Status = v1beta2.BackupStatus{Phase: v1beta2.BackupPhaseSucceeded, EtcdRevision: m.revisions[name], SnapshotSize: 12 << 20, StoredSize: 5 << 20, URI: "pvc://backups/x", Verified: true, VerifiedBy: v1beta2.VerificationHash}
	if m.failed == name {
		b.Status = v1beta2.BackupStatus{Phase: v1beta2.BackupPhaseFailed, Reason: "EtcdDenied"}
	}
	return b
}

const migrateLine = "migrate snapshot new --endpoints=http://etcd-0.etcd:2379,http://etcd-1.etcd:2379 --pvc=backups/etcd"

// TestMigrateSnapshotScreens: what the command prints while nothing fails, and when the source
// was written.
func TestMigrateSnapshotScreens(t *testing.T) {
	for name, c := range map[string]struct {
		before, after int64
		args          string
		code          failure.Code
	}{
		"plan":    {812, 812, "", failure.CodeDone},
		"done":    {812, 812, "--yes", failure.CodeDone},
		"written": {812, 820, "--yes", failure.CodeNotMet},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMigrated(t, c.before, c.after)
			p := newTerminal(t, m.Server, false)
			p.expect(p.run(strings.Fields(migrateLine+" "+c.args)...), c.code)
			golden(t, "migrate-snapshot-"+name, p.out.String()+p.err.String())
			if created := len(m.bodies); (created == 0) != (c.args == "") {
				t.Errorf("objects that were created: %d", created)
			}
		})
	}
}

// TestMigrateSnapshotObjects: the objects that the migration creates.
func TestMigrateSnapshotObjects(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new.yaml")
	text := `apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdCluster
metadata: {name: old, labels: {team: data}}
spec: {size: 5, version: 3.5.21}
---
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdBackup
spec: {storageType: S3, s3: {path: bucket/etcd, awsSecret: aws}, compression: Zstd}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	m := newMigrated(t, 7, 7)
	p := newTerminal(t, m.Server, false)
	p.expect(p.run("migrate", "snapshot", "new", "--endpoints=https://etcd:2379", "--tls-secret=client", "-f", file, "--yes"), failure.CodeDone,
		"members 5, etcd 3.5.21", "S3 bucket/etcd", "prod/new has every write of the source, up to revision 7")
	before, restore := &v1beta2.EtcdBackup{}, &v1beta2.EtcdRestore{}
	for body, into := range map[string]any{m.bodies["new-migration-before"]: before, m.bodies["new-migration"]: restore} {
		if err := json.Unmarshal([]byte(body), into); err != nil {
			t.Fatal(err)
		}
	}
	if s := before.Spec; s.S3 == nil || s.S3.Path != "bucket/etcd/new-before-20260304T120000Z" || s.ClientTLSSecret != "client" || s.Compression != v1beta2.CompressionZstd || s.EtcdEndpoints[0] != "https://etcd:2379" {
		t.Errorf("unexpected backup %+v", s)
	}
	s := restore.Spec
	if s.EtcdCluster.Name != "new" || s.Backup.Name != "new-migration-before" || ptr.Deref(s.RevisionBump, 1) != 0 || ptr.Deref(s.ClusterTemplate.Spec.Replicas, 0) != 5 ||
		s.ClusterTemplate.Spec.Version != "3.5.21" || s.ClusterTemplate.Labels["team"] != "data" {
		t.Errorf("unexpected restore %+v", s)
	}
}

// TestMigrateSnapshotContinues: the command continues an interrupted migration and creates no
// object a second time.
func TestMigrateSnapshotContinues(t *testing.T) {
	m := newMigrated(t, 812, 815)
	p := newTerminal(t, m.Server, false)
	p.expect(p.run(strings.Fields(migrateLine+" --yes")...), failure.CodeNotMet)
	first := len(m.Requests())
	p = newTerminal(t, m.Server, false)
	p.expect(p.run(strings.Fields(migrateLine+" --yes")...), failure.CodeNotMet, "new-migration-before stores", "It exists: the migration continues.", "revisions 813 to 815 of the source are missing in prod/new")
	if again := len(m.Requests()) - first; again != 0 {
		t.Errorf("it sent %d requests that change something", again)
	}
	p = newTerminal(t, m.Server, false)
	p.expect(p.run("migrate", "snapshot", "new", "--endpoints=http://other:2379", "--pvc=backups", "--yes"), failure.CodeNotMet,
		"is about another etcd: EtcdBackup prod/new-migration-before backs up http://etcd-0.etcd:2379,http://etcd-1.etcd:2379", "kubectl -n prod delete --ignore-not-found etcdrestore/new-migration ")
	delete(m.bodies, "new-migration-before")
	p = newTerminal(t, m.Server, false)
	p.expect(p.run(strings.Fields(migrateLine+" --yes")...), failure.CodeNotMet, "EtcdRestore new-migration exists without EtcdBackup new-migration-before")
}

// TestMigrateSnapshotRejects: what keeps a migration from its start, or ends it.
func TestMigrateSnapshotRejects(t *testing.T) {
	for name, c := range map[string]struct {
		line     string
		failed   string
		terminal bool
		in       string
		prepare  func(*migrated)
		code     failure.Code
		want     []string
		created  int
	}{
		"no endpoints":          {line: "migrate snapshot new --pvc=backups", code: failure.CodeUsage, want: []string{"--endpoints is missing"}},
		"no location":           {line: "migrate snapshot new --endpoints=http://x:2379", code: failure.CodeUsage, want: []string{"the backup location is missing; name a PVC with --pvc"}},
		"no manifest":           {line: "migrate snapshot new --endpoints=http://x:2379 -f /none", code: failure.CodeUsage, want: []string{"--filename: open /none"}},
		"a PVC that is missing": {line: "migrate snapshot new --endpoints=http://x:2379 --pvc=none -y", code: failure.CodeNotFound, want: []string{"Create the PVC, or name another PVC"}},
		"a PVC that may not be read": {line: migrateLine, prepare: func(m *migrated) {
			m.Put("/api/v1/namespaces/prod/persistentvolumeclaims/backups", plugintest.Forbidden("persistentvolumeclaims", "backups"))
		}, code: failure.CodeForbidden, want: []string{"the right to get persistentvolumeclaims in namespace prod is missing", "ClusterRole view"}},
		"a cluster that exists": {line: migrateLine + " -y", prepare: func(m *migrated) { m.Put(migrationNamespace+"etcdclusters/new", &v1beta2.EtcdCluster{}) },
			code: failure.CodeNotMet, want: []string{"EtcdCluster prod/new exists", "Choose another name"}},
		"backups may not be created": {line: migrateLine + " -y", prepare: func(m *migrated) {
			m.Server.On(http.MethodPost, migrationNamespace+"etcdbackups", func(*http.Request, []byte) any { return plugintest.Forbidden("etcdbackups", "") })
		}, code: failure.CodeForbidden, want: []string{"the right to create etcdbackups", "ClusterRole etcd-operator:edit"}},
		"a wrong name at the question": {line: migrateLine, terminal: true, in: "yes\n", code: failure.CodeFailed, want: []string{"Type the name of the new cluster", "not confirmed; nothing was changed"}},
		"--dry-run on a terminal":      {line: migrateLine + " --dry-run", terminal: true, in: "new\n", code: failure.CodeDone, want: []string{"Nothing was changed: --dry-run was given."}},
		"the name at the question":     {line: migrateLine, terminal: true, in: "new\n", code: failure.CodeDone, want: []string{"Migration is done"}, created: 3},
		"a backup that fails": {line: migrateLine + " -y", failed: "new-migration-before", code: failure.CodeFailed,
			want: []string{"the backup failed: EtcdDenied", "The source is unchanged", "kubectl -n prod delete etcdbackup/new-migration-before"}, created: 1},
		"a source that was replaced": {line: migrateLine + " -y", prepare: func(m *migrated) { m.revisions["new-migration-after"] = 3 }, code: failure.CodeNotMet,
			want: []string{"the data of the source was replaced", "it was at revision 812 and is at revision 3 now", "Connect no application to prod/new"}, created: 3},
		"a restore that fails": {line: migrateLine + " -y", failed: "new-migration", code: failure.CodeFailed,
			want: []string{"the restore failed: the quota is too small", "delete --ignore-not-found etcdrestore/new-migration etcdcluster/new"}, created: 2},
		"a check that fails": {line: migrateLine + " -y", failed: "new-migration-after", code: failure.CodeFailed,
			want: []string{"kubectl -n prod delete etcdbackup/new-migration-after"}, created: 3},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMigrated(t, 812, 812)
			m.failed = c.failed
			if c.prepare != nil {
				c.prepare(m)
			}
			p := newTerminal(t, m.Server, c.terminal)
			p.In = strings.NewReader(c.in)
			p.expect(p.run(strings.Fields(c.line)...), c.code, c.want...)
			if len(m.bodies) != c.created {
				t.Errorf("objects that were created: %d, want %d", len(m.bodies), c.created)
			}
		})
	}
}

// TestMigrateSnapshotInterrupted: a step that takes too long, and a user that ends the command.
func TestMigrateSnapshotInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := newMigrated(t, 812, 812)
	restoring := &v1beta2.EtcdRestore{Status: v1beta2.RestoreStatus{Phase: v1beta2.RestorePhaseRestoring}}
	m.Server.On(http.MethodGet, migrationNamespace+"etcdrestores/new-migration", func(*http.Request, []byte) any {
		if m.bodies["new-migration"] == "" {
			return apierrors.NewNotFound(v1beta2.Resource("etcdrestores"), "new-migration")
		}
		return restoring
	})
	p := newTerminal(t, m.Server, false)
	p.expect(p.run(strings.Fields(migrateLine+" -y --timeout=2s")...), failure.CodeTimedOut,
		"Step 2 of 3, restore to prod/new: not done within 2s: restoring; type the same command again to continue the migration")
	looks := 0
	m.Server.On(http.MethodGet, migrationNamespace+"etcdrestores/new-migration", func(*http.Request, []byte) any {
		if looks++; looks == 3 {
			cancel() // the command follows the restore
		}
		return restoring
	})
	p = newTerminal(t, m.Server, false)
	p.expect(p.runIn(ctx, strings.Fields(migrateLine+" -y")...), failure.CodeFailed, "interrupted: Step 2 of 3", "type the same command again")
}
