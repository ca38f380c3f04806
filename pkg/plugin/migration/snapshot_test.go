// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func newSnapshot(source v1beta2.BackupSource) *Snapshot {
	return &Snapshot{
		Namespace: "prod", Name: "new", Endpoints: []string{"http://etcd-0.etcd:2379"}, TLSSecret: "client",
		Location: v1beta2.BackupSpec{BackupSource: source, ClientTLSSecret: "other"}, Started: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC),
	}
}

// TestPathsOfBackups: no backup of a migration replaces another object of the store.
func TestPathsOfBackups(t *testing.T) {
	for name, c := range map[string]struct {
		source v1beta2.BackupSource
		want   string
	}{
		"PVC without a path": {v1beta2.BackupSource{PersistentVolumeClaim: &v1beta2.PersistentVolumeClaimSource{ClaimName: "b"}}, "new-before-20260304T120000Z"},
		"PVC with a path":    {v1beta2.BackupSource{PersistentVolumeClaim: &v1beta2.PersistentVolumeClaimSource{ClaimName: "b", Path: "etcd/"}}, "etcd/new-before-20260304T120000Z"},
		"S3":                 {v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "bucket/a"}}, "bucket/a/new-before-20260304T120000Z"},
		"ABS":                {v1beta2.BackupSource{ABS: &v1beta2.ABSSource{Path: "c"}}, "c/new-before-20260304T120000Z"},
		"GCS":                {v1beta2.BackupSource{GCS: &v1beta2.GCSSource{Path: "c"}}, "c/new-before-20260304T120000Z"},
		"OSS":                {v1beta2.BackupSource{OSS: &v1beta2.OSSSource{Path: "c"}}, "c/new-before-20260304T120000Z"},
	} {
		s := newSnapshot(c.source)
		before, err := s.Before()
		if err != nil {
			t.Fatal(err)
		}
		after, err := s.After()
		if err != nil {
			t.Fatal(err)
		}
		if got := *pathOf(&before.Spec.BackupSource); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		if got, want := *pathOf(&after.Spec.BackupSource), strings.Replace(c.want, "before", "after", 1); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		if before.Spec.ClientTLSSecret != "client" || before.Spec.EtcdEndpoints[0] != s.Endpoints[0] {
			t.Errorf("%s: unexpected source %+v", name, before.Spec)
		}
	}
	if _, err := newSnapshot(v1beta2.BackupSource{}).Before(); !errors.Is(err, ErrLocation) {
		t.Errorf("a location without a source: %v", err)
	}
}

func TestMissing(t *testing.T) {
	at := func(revision int64) *v1beta2.EtcdBackup {
		return &v1beta2.EtcdBackup{Status: v1beta2.BackupStatus{EtcdRevision: revision}}
	}
	if first, _, err := Missing(at(7), at(3)); !errors.Is(err, ErrReplaced) || first != 0 {
		t.Errorf("a source that is at an earlier revision: got %d, %v", first, err)
	}
	for name, c := range map[string]struct{ before, after, first, last int64 }{
		"source that stays":     {7, 7, 0, 0},
		"source that was moved": {7, 9, 8, 9},
		"one write":             {7, 8, 8, 8},
	} {
		if first, last, err := Missing(at(c.before), at(c.after)); first != c.first || last != c.last || err != nil {
			t.Errorf("%s: got %d to %d, %v", name, first, last, err)
		}
	}
}

func TestReadManifest(t *testing.T) {
	const (
		head    = "apiVersion: etcd.database.coreos.com/v1beta2\n"
		cluster = head + "kind: EtcdCluster\nmetadata: {name: a}\nspec: {size: 5}\n"
		backup  = head + "kind: EtcdBackup\nspec: {storageType: S3, s3: {path: bucket}}\n"
	)
	for name, c := range map[string]struct{ text, want string }{
		"both":                     {"# a comment\n---\n" + cluster + "---\n" + backup, ""},
		"nothing":                  {"", ""},
		"misspelled field":         {head + "kind: EtcdCluster\nspec: {sise: 5}\n", `unknown field "sise"`},
		"two clusters":             {cluster + "---\n" + cluster, `one more document of kind "EtcdCluster"`},
		"another kind":             {head + "kind: EtcdRestore\n", `one more document of kind "EtcdRestore"`},
		"another group":            {"apiVersion: v1\nkind: Secret\n", `apiVersion is "v1", want etcd.database.coreos.com/v1beta2`},
		"no YAML":                  {"{", "the manifest cannot be used"},
		"backup of an EtcdCluster": {head + "kind: EtcdBackup\nspec: {etcdCluster: {name: a}}\n", "spec.etcdCluster"},
		"encrypted backup":         {head + "kind: EtcdBackup\nspec: {encryption: {ageRecipientsSecret: a}}\n", "spec.encryption"},
		"scheduled backup":         {head + "kind: EtcdBackup\nspec: {backupPolicy: {schedule: '@daily'}}\n", "periodic"},
	} {
		m, err := ReadManifest(strings.NewReader(c.text))
		if err == nil && m.Backup != nil {
			_, err = m.Location()
		}
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (!errors.Is(err, ErrManifest) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
		if name == "both" && (*m.Cluster.Spec.Replicas != 5 || m.Backup.Spec.S3.Path != "bucket") {
			t.Errorf("unexpected %+v", m)
		}
	}
}
