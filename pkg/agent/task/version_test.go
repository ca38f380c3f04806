// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// note writes entries into a bucket of a database; an empty value deletes the entry.
func note(t *testing.T, file, bucket string, entries map[string]string) {
	t.Helper()
	db, err := bbolt.Open(file, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte(bucket))
		if err != nil {
			return err
		}
		for key, value := range entries {
			if value == "" {
				err = errors.Join(err, b.Delete([]byte(key)))
			} else {
				err = errors.Join(err, b.Put([]byte(key), []byte(value)))
			}
		}
		return err
	})
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestStorageVersionIsThatOfTheSnapshot: a backup has the version that its snapshot has, even
// if the member names none: a cluster has a version a moment before its storage has one.
func TestStorageVersionIsThatOfTheSnapshot(t *testing.T) {
	cluster := etcdtest.NewWithoutStorageVersion(t)
	member := cluster.Member("m0")
	member.Stop()
	note(t, member.Database(), "meta", map[string]string{"storageVersion": ""})
	note(t, member.Database(), "cluster", map[string]string{"clusterVersion": "3.7.0"}) // if it had none yet
	member.Start()
	for _, layout := range []manifest.Layout{manifest.LayoutDirectory, manifest.LayoutObject} {
		b := newBench(t, cluster)
		saved := b.mustRun(agent.CommandSave, b.saveRequest("id-1", layout))
		if saved.StorageVersion != "3.7.0" {
			t.Errorf("%s: the backup is of the storage version %q", layout, saved.StorageVersion)
		}
		for target, class := range map[string]agent.ErrorClass{"3.5.35": agent.ClassUnsupported, "3.6.16": agent.ClassUnsupported, "3.7.3": ""} {
			result, _ := b.fetch(saved.Key, func(r *agent.Request) { r.Fetch.TargetVersion = target })
			if got := classOf(result); got != class {
				t.Errorf("%s: restore into %s: %q, want %q", layout, target, got, class)
			}
		}
	}
	b := newBench(t, cluster)
	etcd := b.saveRequest("x", manifest.LayoutDirectory).Etcd
	live := b.mustRun(agent.CommandFetch, &agent.Request{ID: "f", Etcd: etcd, Fetch: &agent.Fetch{File: filepath.Join(t.TempDir(), "s.db")}})
	if live.StorageVersion != "3.7.0" {
		t.Errorf("what was fetched from the member is of the storage version %q", live.StorageVersion)
	}
}

func classOf(result *agent.Result) agent.ErrorClass {
	if result.Error == nil {
		return ""
	}
	return result.Error.Class
}

// TestSnapshotWithoutVersion: a snapshot without a manifest and without a version is of etcd
// 3.5 or newer if it has a term, and of any version if it has none.
func TestSnapshotWithoutVersion(t *testing.T) {
	bench := newBench(t, etcdtest.New(t))
	for name, test := range map[string]struct {
		meta    map[string]string
		targets map[string]agent.ErrorClass
	}{
		"term":    {map[string]string{"term": "12345678"}, map[string]agent.ErrorClass{"3.4.23": agent.ClassUnsupported, "3.5.35": "", "3.7.3": ""}},
		"no term": {map[string]string{"consistent_index": "12345678"}, map[string]agent.ErrorClass{"3.4.23": "", "3.7.3": ""}},
	} {
		file := filepath.Join(t.TempDir(), "db")
		note(t, file, "key", nil)
		note(t, file, "meta", test.meta)
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(raw)
		if err := os.MkdirAll(filepath.Join(bench.dir, "backups"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bench.dir, "backups", "etcd"), slices.Concat(raw, sum[:]), 0o600); err != nil {
			t.Fatal(err)
		}
		for target, class := range test.targets {
			look := &agent.Request{ID: "look", Store: bench.storePlace("backups/etcd"), Verify: &agent.Verify{}}
			look.Verify.TargetVersion = target
			if got := classOf(bench.run(agent.CommandVerify, look)); got != class {
				t.Errorf("%s: restore into %s: %q, want %q", name, target, got, class)
			}
		}
	}
}
