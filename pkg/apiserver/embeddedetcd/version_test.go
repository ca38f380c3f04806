// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package embeddedetcd

import (
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/etcdserver"
)

// TestStorageVersion: a directory stays one that the previous release can open, from the first
// moment at which the server serves, and the next start does not raise its version. TestWayBackOfTheStorage
// starts an etcd of that release.
func TestStorageVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 {
		server := start(t, dir)
		for range 3 {
			versions := etcdserver.NewServerVersionAdapter(server.etcd.Server)
			cluster, storage := versions.GetClusterVersion(), versions.GetStorageVersion()
			if cluster == nil || storage == nil || *cluster != storageVersion || *storage != storageVersion {
				t.Errorf("the versions are %v and %v, want %s", cluster, storage, storageVersion)
			}
			<-time.After(50 * time.Millisecond)
		}
		if _, err := connect(t, server).Put(t.Context(), "key", "value"); err != nil {
			t.Error(err)
		}
		server.Stop()
	}
}
