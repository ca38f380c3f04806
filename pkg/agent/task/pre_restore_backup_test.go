// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// TestPreRestoreBackupIsNotTheNewest: what a restore has replaced is not taken for the newest
// backup of a place, but is found where nothing else is.
func TestPreRestoreBackupIsNotTheNewest(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	b.cluster.Member("m0").Put(10)
	desired := b.mustRun(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutDirectory))
	b.cluster.Member("m0").Put(10)
	for _, place := range []string{"backups/etcd", "backups/etcd-pre-restore"} {
		r := b.saveRequest("id-"+place, manifest.LayoutDirectory)
		r.Store, r.Save.PreRestoreBackup, r.Save.Started = b.storePlace(place), true, time.Now().Add(time.Hour)
		spoilt := b.mustRun(agent.CommandSave, r)
		if spoilt.SHA256 == desired.SHA256 {
			t.Fatal("both are the same")
		}
		result, name := b.fetch("", nil)
		if result.Error != nil {
			t.Fatal(result.Error)
		}
		mustHaveSum(t, name, desired.SHA256)
		if place == "backups/etcd" {
			continue
		}
		result, name = b.fetch("", func(r *agent.Request) { r.Store = b.storePlace(place) })
		if result.Error != nil {
			t.Fatal(result.Error)
		}
		mustHaveSum(t, name, spoilt.SHA256)
	}
}
