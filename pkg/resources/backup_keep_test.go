// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestManyHeldBackups: however many backups are held, below however long a prefix, the argument of the Job stays short and
// none of them is deleted.
func TestManyHeldBackups(t *testing.T) {
	place := "etcd/" + strings.Repeat("long/", 150) + "nightly/v1/ns/c-u0"
	var few, many []string
	for i := range 400 {
		many = append(many, fmt.Sprintf("s3://bucket/%s/2026%04d-1/snapshot.db", place, i))
	}
	few = append(few, many[:3]...)
	if got := keptPlaces(few); !slices.Equal(got, few) {
		t.Errorf("a few: %q", got)
	}
	got := keptPlaces(append(many, "s3://bucket/key"))
	if size := len(strings.Join(got, `"",`)); size > maxKept {
		t.Fatalf("%d bytes: %q", size, got)
	}
	request := &agent.Request{Store: &agent.Store{Type: v1beta2.BackupStorageTypeS3, Bucket: "bucket"}, Prune: &agent.Prune{Keep: got}}
	for _, uri := range many {
		if key := strings.TrimSuffix(strings.TrimPrefix(uri, "s3://bucket/"), "snapshot.db") + "manifest.json"; !request.Keeps(key) {
			t.Fatalf("%s is deleted", uri)
		}
	}
	if request.Keeps("etcd/other/v1/ns/c-u0/1/manifest.json") {
		t.Error("what nothing holds is kept")
	}
}
