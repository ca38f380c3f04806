// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package embeddedetcd

import (
	"context"
	"fmt"
	"time"

	"github.com/coreos/go-semver/semver"
	"go.etcd.io/etcd/server/v3/etcdserver"
	serverversion "go.etcd.io/etcd/server/v3/etcdserver/version"
	"k8s.io/utils/clock"
)

const (
	// downgradeTimeout bounds the wait for a storage that the previous release can open.
	downgradeTimeout = 30 * time.Second
	// downgradePoll is how often the versions are read meanwhile.
	downgradePoll = 20 * time.Millisecond
	// monitorInterval is how often etcd itself brings the version of the storage to that of the cluster.
	monitorInterval = 4 * time.Second
)

// storageVersion is the minor version of etcd that the data directory is kept for: the etcd of the previous
// release. That release must be able to open the directory, because an upgrade can be taken back.
// etcd itself would raise the version as soon as it has started, and an older etcd does not start then.
var storageVersion = semver.Version{Major: 3, Minor: 6}

// keepStorageVersion returns when an etcd of storageVersion can open the data directory, now and after each
// later stop. It uses the downgrade of etcd, which stays enabled until an etcd of that version has started:
// so the version is raised at most by the first start.
func (s *Server) keepStorageVersion(ctx context.Context, c clock.Clock) error {
	ctx, cancel := context.WithTimeout(ctx, downgradeTimeout)
	defer cancel()
	return awaitStorageVersion(ctx, etcdserver.NewServerVersionAdapter(s.etcd.Server), s.etcd.Server.StopNotify(), c)
}

// awaitStorageVersion is keepStorageVersion for one server. etcd may have read the version of the cluster before the
// downgrade, and raise that of the storage after it had matched. So the versions must match for as long as etcd takes
// to look again, unless they did when the server had started: then nothing that runs has read another version.
func awaitStorageVersion(ctx context.Context, versions serverversion.Server, stopped <-chan struct{}, c clock.Clock) error {
	settles := time.Duration(0)
	if info := versions.GetDowngradeInfo(); info == nil || !info.Enabled || *info.GetTargetVersion() != storageVersion {
		settles = monitorInterval
		if err := versions.DowngradeEnable(ctx, &storageVersion); err != nil {
			return fmt.Errorf("enable the downgrade of the storage to %s: %w", storageVersion, err)
		}
	}
	asked, matched := false, time.Time{}
	for {
		cluster, storage := versions.GetClusterVersion(), versions.GetStorageVersion()
		if cluster != nil && *cluster == storageVersion && storage != nil && *storage == storageVersion {
			if matched.IsZero() {
				matched = c.Now()
			}
			if c.Since(matched) >= settles {
				return nil
			}
		} else {
			matched, settles = time.Time{}, monitorInterval
		}
		switch {
		case cluster == nil:
			// A new etcd decides its first version by itself.
		case *cluster != storageVersion:
			if !asked {
				versions.UpdateClusterVersion(storageVersion.String())
				asked = true
			}
		case matched.IsZero():
			// It fails until the entries about the newer version are in a snapshot, which etcd takes now.
			_ = versions.UpdateStorageVersion(storageVersion)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the storage is of etcd %v, which the previous release cannot open, want %s: %w; "+
				"restart the API server, and save the state before you go back", storage, storageVersion, ctx.Err())
		case <-stopped:
			return ErrStopped
		case <-c.After(downgradePoll):
		}
	}
}
