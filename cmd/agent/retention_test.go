// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// TestRetentionAcrossClusters: a cluster was created again under the same name, in a real
// store of each kind. Backups of the earlier cluster that the same EtcdBackup has made are
// deleted by count and by age, except the last backup, which is deleted by age only.
// Backups of another EtcdBackup stay, and the result lists them.
func TestRetentionAcrossClusters(t *testing.T) {
	eachRealStore(t, func(t *testing.T, s *realStore) {
		place := s.at(t, s.endpoint, s.right)
		store := s.open(t)
		now := time.Now().UTC().Truncate(time.Second)
		of := func(uid string) manifest.Owner { return manifest.Owner{Namespace: "n", Name: "c", UID: uid} }
		var ours, notOwned []string
		for i := range 6 {
			uid := "before"
			if i >= 3 {
				uid = "now"
			}
			ours = append(ours, keepBackup(t, store, of(uid), "mine", now.Add(-time.Duration(6-i)*time.Hour)))
		}
		for i := range 2 {
			notOwned = append(notOwned, keepBackup(t, store, of("elsewhere"), "another", now.Add(-time.Duration(99+i)*time.Hour)))
		}
		prune := func(count int32, age time.Duration) *agent.Result {
			t.Helper()
			result, _ := runHere(t, agent.CommandPrune, &agent.Request{ID: "p", Store: place, Prune: &agent.Prune{
				Layout: manifest.LayoutDirectory, Owner: of("now"), BackupUID: "mine", Count: count, MaxAgeSeconds: int64(age / time.Second),
			}})
			if result.Error != nil {
				t.Fatal(result.Error)
			}
			return result
		}
		// The oldest two of the earlier cluster, and the oldest of the present one, are too many.
		result := prune(2, 0)
		if got := presentOf(t, store, ours); got != "001011" || result.Pruned != 3 {
			t.Errorf("by count: left are %s, %d were pruned", got, result.Pruned)
		}
		if !strings.HasSuffix(result.Spared, "snapshot.db") || !strings.Contains(result.Spared, "c-before/") {
			t.Errorf("the last one of the earlier cluster is %q", result.Spared)
		}
		if got := presentOf(t, store, notOwned); got != "11" || result.Unproved != 2 || !strings.Contains(result.UnprovedAt, "/v1/n/c-elsewhere/") {
			t.Errorf("of another EtcdBackup are left %s; the result says %d at %q", got, result.Unproved, result.UnprovedAt)
		}
		result = prune(2, 3*time.Hour)
		if got := presentOf(t, store, ours); got != "000011" || result.Spared != "" {
			t.Errorf("by age: left are %s, spared is %q", got, result.Spared)
		}
		if got := presentOf(t, store, notOwned); got != "11" {
			t.Errorf("by age: of another EtcdBackup are left %s", got)
		}
	})
}

// keepBackup stores a backup without a snapshot of worth, and returns the key of its manifest.
func keepBackup(t *testing.T, store objectstore.Store, of manifest.Owner, madeBy string, at time.Time) string {
	t.Helper()
	place := manifest.Place{Layout: manifest.LayoutDirectory, Key: "k", Owner: of}
	key := place.SnapshotKey("id", at, 7, "", "")
	sum := strings.Repeat("ab", 32)
	m := &manifest.Manifest{
		FormatVersion: manifest.FormatVersion, ID: "id", Object: "snapshot.db", Layout: manifest.LayoutDirectory, Owner: of, BackupUID: madeBy,
		Revision: 7, Size: 1, SHA256: sum, StoredSize: 1, StoredSHA256: sum, StartedAt: at, FinishedAt: at,
	}
	raw, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	manifestKey := place.Layout.ManifestKey(key)
	for at, content := range map[string][]byte{key: []byte("x"), manifestKey: raw} {
		if err := objectstore.PutBytes(t.Context(), store, at, content, objectstore.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return manifestKey
}

// presentOf returns a one for each key that is there, and a zero for each other.
func presentOf(t *testing.T, store objectstore.Store, keys []string) string {
	t.Helper()
	all, _ := stored(t, store, "k/")
	var text strings.Builder
	for _, key := range keys {
		there := "0"
		for _, found := range all {
			if found == key {
				there = "1"
			}
		}
		text.WriteString(there)
	}
	return text.String()
}
