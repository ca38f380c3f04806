// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func good() *Manifest {
	return &Manifest{
		FormatVersion: FormatVersion, ID: "id", Object: "snapshot.db", Layout: LayoutDirectory,
		Owner: Owner{Namespace: "ns", Name: "c", UID: "u"}, Revision: 7,
		Size: 4128, SHA256: strings.Repeat("ab", 32), StoredSize: 4128, StoredSHA256: strings.Repeat("ab", 32),
		StartedAt: now, FinishedAt: now.Add(time.Minute),
	}
}

func TestEncodeDecode(t *testing.T) {
	raw, err := good().Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(good(), got); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeRejects(t *testing.T) {
	for name, change := range map[string]func(*Manifest){
		"newer":               func(m *Manifest) { m.FormatVersion = FormatVersion + 1 },
		"no version":          func(m *Manifest) { m.FormatVersion = 0 },
		"no object":           func(m *Manifest) { m.Object = "" },
		"object elsewhere":    func(m *Manifest) { m.Object = "../other/snapshot.db" },
		"no size":             func(m *Manifest) { m.Size = 0 },
		"no sum":              func(m *Manifest) { m.SHA256 = "" },
		"short sum":           func(m *Manifest) { m.StoredSHA256 = "abcd" },
		"unknown compression": func(m *Manifest) { m.Compression = "lzma" },
		"unknown encryption":  func(m *Manifest) { m.Encryption = "rot13" },
		"no time":             func(m *Manifest) { m.FinishedAt = time.Time{} },
	} {
		t.Run(name, func(t *testing.T) {
			m := good()
			change(m)
			if err := m.validate(); !errors.Is(err, ErrInvalid) {
				t.Errorf("validate: got %v, want ErrInvalid", err)
			}
		})
	}
	if _, err := Decode([]byte(`{"formatVersion": 2}`)); !errors.Is(err, ErrNewer) {
		t.Errorf("a newer manifest: got %v, want ErrNewer", err)
	}
	if _, err := Decode([]byte("PK")); !errors.Is(err, ErrInvalid) {
		t.Errorf("no JSON: got %v, want ErrInvalid", err)
	}
}

func TestKeys(t *testing.T) {
	owner := Owner{Namespace: "ns", Name: "c", UID: "u"}
	for _, test := range []struct {
		place                                Place
		compression, encryption              string
		snapshot, manifest, prefix, attempts string
	}{
		{
			place: Place{Layout: LayoutDirectory, Key: "backups", Owner: owner}, compression: CompressionZstd, encryption: EncryptionAge,
			snapshot: "backups/v1/ns/c-u/20260304T050607Z-00000000000000000042-89abcdef/snapshot.db.zst.age",
			manifest: "backups/v1/ns/c-u/20260304T050607Z-00000000000000000042-89abcdef/manifest.json",
			prefix:   "backups/v1/ns/c-u/", attempts: "backups/v1/ns/c-u/20260304T050607Z-",
		},
		{
			place:    Place{Layout: LayoutDirectory, Owner: owner},
			snapshot: "v1/ns/c-u/20260304T050607Z-00000000000000000042-89abcdef/snapshot.db",
			manifest: "v1/ns/c-u/20260304T050607Z-00000000000000000042-89abcdef/manifest.json",
			prefix:   "v1/ns/c-u/", attempts: "v1/ns/c-u/20260304T050607Z-",
		},
		{
			place: Place{Layout: LayoutObject, Key: "etcd.backup", Owner: owner}, compression: CompressionZstd,
			snapshot: "etcd.backup", manifest: "etcd.backup.manifest.json", prefix: "etcd.backup", attempts: "etcd.backup",
		},
		{
			place:    Place{Layout: LayoutSeries, Key: "etcd.backup", Owner: owner},
			snapshot: "etcd.backup_v42_2026-03-04-05:06:07", manifest: "etcd.backup_v42_2026-03-04-05:06:07.manifest.json",
			prefix: "etcd.backup_v", attempts: "etcd.backup_v",
		},
	} {
		t.Run(string(test.place.Layout)+"/"+test.place.Key, func(t *testing.T) {
			snapshot := test.place.SnapshotKey("0123456789abcdef", now, 42, test.compression, test.encryption)
			if snapshot != test.snapshot {
				t.Errorf("snapshot %s, want %s", snapshot, test.snapshot)
			}
			key := test.place.Layout.ManifestKey(snapshot)
			if key != test.manifest || !IsManifest(key) || IsManifest(snapshot) {
				t.Errorf("manifest %s, want %s", key, test.manifest)
			}
			if got := test.place.Prefix(); got != test.prefix || !strings.HasPrefix(snapshot, got) {
				t.Errorf("prefix %s, want %s", got, test.prefix)
			}
			if got := test.place.AttemptPrefix(now); got != test.attempts || !strings.HasPrefix(snapshot, got) {
				t.Errorf("attempts %s, want %s", got, test.attempts)
			}
			// However the backup is named, its manifest is found, and from it the snapshot.
			names := []string{snapshot, key}
			if test.place.Layout == LayoutDirectory {
				names = append(names, path.Dir(snapshot), path.Dir(snapshot)+"/")
			}
			for _, name := range names {
				if !slices.Contains(Candidates(name), key) {
					t.Errorf("%s is not among the candidates of %s: %v", key, name, Candidates(name))
				}
			}
			m := good()
			m.Object = path.Base(snapshot)
			if got := m.SnapshotKey(key); got != snapshot {
				t.Errorf("the manifest leads to %s, want %s", got, snapshot)
			}
			m.Layout = test.place.Layout
			if !test.place.IsInPlace(key, m) {
				t.Error("the manifest is not in its place")
			}
			other := test.place
			other.Owner.UID = "another"
			if other.IsInPlace(key, m) {
				t.Error("the manifest is in the place of another owner")
			}
		})
	}
}

// Two clusters share nothing, also if the name of one begins with the name of the other.
func TestPlacesOfOwnersAreApart(t *testing.T) {
	a := Place{Layout: LayoutDirectory, Key: "k", Owner: Owner{Namespace: "ns", Name: "c", UID: "1"}}
	b := Place{Layout: LayoutDirectory, Key: "k", Owner: Owner{Namespace: "ns", Name: "c", UID: "12"}}
	if strings.HasPrefix(b.Prefix(), a.Prefix()) || strings.HasPrefix(a.Prefix(), b.Prefix()) {
		t.Errorf("%s and %s overlap", a.Prefix(), b.Prefix())
	}
}

func stored(revision int64, age time.Duration) Stored {
	m := good()
	m.Revision, m.StartedAt, m.FinishedAt = revision, now.Add(-age-time.Minute), now.Add(-age)
	return Stored{Key: fmt.Sprintf("k_v%d.manifest.json", revision), Manifest: m}
}

func TestPrunable(t *testing.T) {
	// By name v998 is the last of these; by time it is the first.
	three := []Stored{stored(998, 3*time.Hour), stored(1000, time.Hour), stored(999, 2*time.Hour)}
	for name, test := range map[string]struct {
		backups   []Stored
		retention Retention
		want      []int64
	}{
		"no limit":                     {three, Retention{}, nil},
		"count, a digit more":          {three, Retention{Count: 2}, []int64{998}},
		"count of one":                 {three, Retention{Count: 1}, []int64{998, 999}},
		"age":                          {three, Retention{MaxAge: 90 * time.Minute}, []int64{998, 999}},
		"age, never the newest":        {three, Retention{MaxAge: time.Minute}, []int64{998, 999}},
		"both":                         {three, Retention{Count: 2, MaxAge: 90 * time.Minute}, []int64{998, 999}},
		"one":                          {three[:1], Retention{Count: 1, MaxAge: time.Second}, nil},
		"none":                         {nil, Retention{Count: 1}, nil},
		"same time, the higher stays":  {[]Stored{stored(5, time.Hour), stored(6, time.Hour)}, Retention{Count: 1}, []int64{5}},
		"from the future is kept last": {[]Stored{stored(5, -time.Hour), stored(6, time.Hour)}, Retention{Count: 1}, []int64{6}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int64
			for _, s := range Prunable(test.backups, test.retention, now, now) {
				got = append(got, s.Manifest.Revision)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestInPlace: only what is of this owner, lies where this owner's lies, and is named so, is
// this owner's to count and to delete.
func TestInPlace(t *testing.T) {
	owner := Owner{Namespace: "ns", Name: "c", UID: "u"}
	place := Place{Layout: LayoutDirectory, Key: "k", Owner: owner}
	inside := place.Prefix() + "x/manifest.json"
	for name, test := range map[string]struct {
		key    string
		layout Layout
		owner  Owner
		want   bool
	}{
		"ours":           {inside, LayoutDirectory, owner, true},
		"a snapshot":     {place.Prefix() + "x/snapshot.db", LayoutDirectory, owner, false},
		"elsewhere":      {"other/v1/ns/c-u/x/manifest.json", LayoutDirectory, owner, false},
		"another layout": {inside, LayoutSeries, owner, false},
		"another life":   {inside, LayoutDirectory, Owner{Namespace: "ns", Name: "c", UID: "v"}, false},
		"another space":  {inside, LayoutDirectory, Owner{Namespace: "x", Name: "c", UID: "u"}, false},
	} {
		if got := place.IsInPlace(test.key, &Manifest{Layout: test.layout, Owner: test.owner}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestBelow: a place is a directory or the name of a series, and no other name that begins
// like it.
func TestBelow(t *testing.T) {
	for _, test := range []struct {
		key, manifest string
		below         bool
	}{
		{"prod/a", "prod/a/v1/ns/c-u/20260102T030405Z-1-id/manifest.json", true},
		{"prod/a", "prod/a/etcd.backup.manifest.json", true},
		{"prod/a", "prod/a_v81233_2026-01-02-03:04:05.manifest.json", true},
		{"prod/a", "prod/ab/v1/ns/c-u/20260102T030405Z-1-id/manifest.json", false},
		{"prod/a", "prod/a-pre-restore/v1/ns/c-u/20260102T030405Z-1-id/manifest.json", false},
		{"prod/a", "prod/a_v2/v1/ns/c-u/20260102T030405Z-1-id/manifest.json", false},
		{"prod/a", "prod/ab.manifest.json", false},
		{"", "v1/ns/c-u/20260102T030405Z-1-id/manifest.json", true},
	} {
		if got := IsBelow(test.key, test.manifest); got != test.below {
			t.Errorf("%s below %q: %t", test.manifest, test.key, got)
		}
	}
}
