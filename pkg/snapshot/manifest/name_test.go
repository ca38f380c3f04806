// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"testing"
	"time"
)

// TestNameOf: what a key says is what it was made of, and nothing is read into other keys.
func TestNameOf(t *testing.T) {
	place := Place{Layout: LayoutDirectory, Key: "k", Owner: Owner{Namespace: "ns", Name: "c", UID: "u"}}
	snapshot := place.SnapshotKey("0123456789abcdef", now, 42, CompressionZstd, "")
	want := Name{UID: "u", Dir: "k/v1/ns/c-u/20260304T050607Z-00000000000000000042-89abcdef", Started: now, Revision: 42}
	earlier := place
	earlier.Owner.UID = "before"
	for key, of := range map[string]string{
		snapshot: "u", place.Layout.ManifestKey(snapshot): "u", earlier.SnapshotKey("id", now, 42, "", ""): "before",
	} {
		got, ok := place.NameOf(key)
		if !ok || got.UID != of || !got.Started.Equal(want.Started) || got.Revision != want.Revision || of == "u" && got != want {
			t.Errorf("%s says %+v, %t", key, got, ok)
		}
	}
	for _, key := range []string{
		"k/v1/ns/c-u/manifest.json", "k/v1/ns/c-u/x/manifest.json", "k/v1/ns/c-u/20260304T050607Z-42-id/manifest.json",
		"k/v1/ns/c-u/20269904T050607Z-00000000000000000042-id/manifest.json", want.Dir + "/deeper/manifest.json",
		"k/v1/ns/c-/20260304T050607Z-00000000000000000042-id/manifest.json/..", "k/v1/ns/d-u/20260304T050607Z-00000000000000000042-id/manifest.json",
	} {
		if got, ok := place.NameOf(key); ok && got.UID == "u" || ok && got.UID == "" {
			t.Errorf("%s says %+v", key, got)
		}
	}
	if got := ClusterDir("s3://b/" + snapshot); got != "s3:/b/k/v1/ns/c-u" || ClusterDir("s3://b/k_v1_2026") != "" {
		t.Errorf("the directory of the cluster is %s", got)
	}
}

// TestJudgeKeepsTheLastOfAnEarlierCluster: indexes 0 to 2 are of the cluster, the older ones of
// the cluster before, and the oldest of one before that.
func TestJudgeKeepsTheLastOfAnEarlierCluster(t *testing.T) {
	var backups []Dated
	for i, cluster := range []string{"now", "now", "now", "before", "before", "first"} {
		backups = append(backups, Dated{At: now.Add(-time.Duration(i) * time.Hour), Cluster: cluster})
	}
	for name, test := range map[string]struct {
		retention    Retention
		surplus, old []int
		spared       int
	}{
		"nothing":               {Retention{}, nil, nil, -1},
		"count":                 {Retention{Count: 2}, []int{5, 4, 2}, nil, 3},
		"count of one":          {Retention{Count: 1}, []int{5, 4, 2, 1}, nil, 3},
		"count reaches back":    {Retention{Count: 4}, []int{5, 4}, nil, -1},
		"age":                   {Retention{MaxAge: 90 * time.Minute}, nil, []int{5, 4, 3, 2}, -1},
		"both":                  {Retention{Count: 2, MaxAge: 150 * time.Minute}, []int{5, 4, 2}, []int{3}, -1},
		"age of all but newest": {Retention{MaxAge: time.Second}, nil, []int{5, 4, 3, 2, 1}, -1},
	} {
		got := test.retention.Judge(backups, now)
		if !slices.Equal(got.Surplus, test.surplus) || !slices.Equal(got.Old, test.old) || got.Spared != test.spared {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := (Retention{Count: 1}).Judge(nil, now); got.Spared != -1 || len(got.Surplus) > 0 {
		t.Errorf("nothing is judged as %+v", got)
	}
}

// TestOwnSnapshots: what a place names is its own, and no key that only looks alike.
func TestOwnSnapshots(t *testing.T) {
	owner := Owner{Namespace: "ns", Name: "c", UID: "u"}
	for layout, others := range map[Layout][]string{
		LayoutDirectory: {"k/v1/ns/c-u/snapshot.db", "k/v1/ns/c-u/mine/snapshot.db", "k/v1/ns/c-u/20260304T050607Z-00000000000000000042-89abcdef-copy/snapshot.db",
			"k/v1/ns/c-u/20260304T050607Z-00000000000000000042-89abcdef/snapshot.db.bak", "k/v1/ns/c-v/20260304T050607Z-00000000000000000042-89abcdef/snapshot.db"},
		LayoutSeries: {"k", "k_v1", "k_v1_2026-03-04", "k_v1_2026-03-04-05:06:07.old", "k_version"},
		LayoutObject: {"k-postgres/base.tar", "k/x", "k.manifest.json", "k2"},
	} {
		place := Place{Layout: layout, Key: "k", Owner: owner}
		for _, compression := range []string{"", CompressionZstd} {
			for _, encryption := range []string{"", EncryptionAge} {
				for _, id := range []string{"i", "0123456789", "0123456789-2"} {
					if key := place.SnapshotKey(id, now, 42, compression, encryption); !place.IsOwnSnapshot(key) {
						t.Errorf("%s: %s is not its own", layout, key)
					}
				}
			}
		}
		for _, key := range others {
			if place.IsOwnSnapshot(key) {
				t.Errorf("%s: %s is its own", layout, key)
			}
		}
	}
}
