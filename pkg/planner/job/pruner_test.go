// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// TestEndangers: a Job endangers what it can reach and does not keep, however the backup is named.
func TestEndangers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		layout manifest.Layout
		key    string
		keep   []string
		uri    string
		want   bool
	}{
		"backup of the Job's place":      {manifest.LayoutDirectory, "k/b", nil, "s3://bucket/k/b/v1/ns/c-1/t/snapshot.db", true},
		"kept by its snapshot":           {manifest.LayoutDirectory, "k/b", []string{"s3://bucket/k/b/t/snapshot.db"}, "s3://bucket/k/b/t/snapshot.db", false},
		"kept by its directory":          {manifest.LayoutDirectory, "k/b", []string{"s3://bucket/k/b/t"}, "s3://bucket/k/b/t/snapshot.db", false},
		"kept by its manifest":           {manifest.LayoutDirectory, "k/b", []string{"s3://bucket/k/b/t/manifest.json"}, "s3://bucket/k/b/t/snapshot.db.zst", false},
		"another is kept":                {manifest.LayoutDirectory, "k/b", []string{"s3://bucket/k/b/u"}, "s3://bucket/k/b/t/snapshot.db", true},
		"place above":                    {manifest.LayoutDirectory, "k/b", nil, "s3://bucket/k", true},
		"place above, with a slash":      {manifest.LayoutDirectory, "k/b", nil, "s3://bucket/k/", true},
		"the bucket":                     {manifest.LayoutDirectory, "k/b", nil, "s3://bucket/", true},
		"place above is kept":            {manifest.LayoutDirectory, "k/b", []string{"s3://bucket/k"}, "s3://bucket/k", false},
		"kept by the place above":        {manifest.LayoutDirectory, "k/b", []string{"s3://bucket/k"}, "s3://bucket/k/b/t/snapshot.db", false},
		"kept by the bucket":             {manifest.LayoutDirectory, "k/b", []string{"s3://bucket/"}, "s3://bucket/k/b/t/snapshot.db", false},
		"series kept by its place":       {manifest.LayoutSeries, "k/b", []string{"s3://bucket/k/b"}, "s3://bucket/k/b_v7_2026-11-01-12:00:00", false},
		"place beside is kept":           {manifest.LayoutDirectory, "k/b", []string{"s3://bucket/k/b2"}, "s3://bucket/k/b/t/snapshot.db", true},
		"place beside":                   {manifest.LayoutDirectory, "k/b", nil, "s3://bucket/k/b2/t/snapshot.db", false},
		"place that begins with letters": {manifest.LayoutDirectory, "key/b", nil, "s3://bucket/k", false},
		"another bucket":                 {manifest.LayoutDirectory, "k/b", nil, "s3://bucket2/k/b/t/snapshot.db", false},
		"another store":                  {manifest.LayoutDirectory, "k/b", nil, "gs://bucket/k/b/t/snapshot.db", false},
		"no key":                         {manifest.LayoutDirectory, "", nil, "s3://bucket/b/t/snapshot.db", true},
		"one of a series":                {manifest.LayoutSeries, "k/b", nil, "s3://bucket/k/b_v7_2026-11-01-12:00:00", true},
		"one of a series is kept":        {manifest.LayoutSeries, "k/b", []string{"s3://bucket/k/b_v7_2026-11-01-12:00:00"}, "s3://bucket/k/b_v7_2026-11-01-12:00:00", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Pruner{Request: &agent.Request{
				Store: &agent.Store{Type: v1beta2.BackupStorageTypeS3, Bucket: "bucket", Key: test.key},
				Prune: &agent.Prune{Layout: test.layout, Keep: test.keep},
			}}
			if got := p.Endangers(test.uri); got != test.want {
				t.Errorf("endangered: %v, want %v", got, test.want)
			}
		})
	}
}
