// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package embeddedetcd

import (
	"context"
	"fmt"
	"time"

	"github.com/coreos/go-semver/semver"
	"go.etcd.io/etcd/server/v3/etcdserver"
)

const (
	// downgradeTimeout bounds the wait for a storage that the previous release can open.
	downgradeTimeout = 30 * time.Second
	// downgradePoll is how often the versions are read meanwhile.
	downgradePoll = 20 * time.Millisecond
)

// storageVersion is the minor version of etcd that the data directory is kept for: the etcd of the previous
// release. That release must be able to open the directory, because an upgrade can be taken back.
// etcd itself would raise the version as soon as it has started, and an older etcd does not start then.
var storageVersion = semver.Version{Major: 3, Minor: 6}

// keepStorageVersion returns when an etcd of storageVersion can open the data directory, now and after each
// later stop. It uses the downgrade of etcd, which stays enabled until an etcd of that version has started:
// so the version is raised at most by the first start.
func (s *Server) keepStorageVersion(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, downgradeTimeout)
	defer cancel()
	versions := etcdserver.NewServerVersionAdapter(s.etcd.Server)
	if info := versions.GetDowngradeInfo(); info == nil || !info.Enabled || *info.GetTargetVersion() != storageVersion {
		if err := versions.DowngradeEnable(ctx, &storageVersion); err != nil {
			return fmt.Errorf("enable the downgrade of the storage to %s: %w", storageVersion, err)
		}
	}
	asked := false
	for {
		cluster, storage := versions.GetClusterVersion(), versions.GetStorageVersion()
		switch {
		case cluster == nil:
			// A new etcd decides its first version by itself.
		case *cluster != storageVersion:
			if !asked {
				versions.UpdateClusterVersion(storageVersion.String())
				asked = true
			}
		case storage != nil && *storage == storageVersion:
			return nil
		default:
			// It fails until the entries about the newer version are in a snapshot, which etcd takes now.
			_ = versions.UpdateStorageVersion(storageVersion)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the storage is of etcd %v, which the previous release cannot open, want %s: %w; "+
				"restart the API server, and save the state before you go back", storage, storageVersion, ctx.Err())
		case <-s.etcd.Server.StopNotify():
			return ErrStopped
		case <-time.After(downgradePoll):
		}
	}
}
