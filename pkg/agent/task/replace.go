// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// mayReplace returns an error that matches errKept if the backup that is at the fixed path of next is to stay. What no
// manifest describes is replaced, as the original operator did.
func (t *run) mayReplace(ctx context.Context, next *manifest.Manifest) error {
	key := next.Layout.ManifestKey(t.request.Store.Key)
	const remedy = "Choose another path, or move or delete"
	m, err := t.readManifest(ctx, key)
	if errors.Is(err, objectstore.ErrUnreadable) {
		// There is a manifest, and it may be that of a better backup.
		return fmt.Errorf("%w, because its manifest cannot be read: %w. %s %s and %s",
			errKept, err, remedy, t.request.Store.URI(next.SnapshotKey(key)), t.request.Store.URI(key))
	}
	if isNoManifest(err) {
		return nil
	}
	if err != nil {
		return err
	}
	stored, err := t.whole(ctx, &manifest.Stored{Key: key, Manifest: m})
	if stored == nil {
		return err
	}
	why := whyKept(m, next)
	if why == "" {
		return nil
	}
	return fmt.Errorf("%w: %s. %s %s and %s",
		errKept, why, remedy, t.request.Store.URI(m.SnapshotKey(key)), t.request.Store.URI(key))
}

// whyKept says why a stored backup is not replaced by a snapshot that may have less of the same data, or other data; empty
// if it is replaced.
//
// The cluster ID decides nothing: a restore and a recovery change it, and an etcd with a fixed token that is created again
// has the same one. The revision does: it never falls in one cluster, and the usual restore and recovery raise it. A backup
// whose data differs protects nothing, because its revision may be wrong, too.
func whyKept(stored, next *manifest.Manifest) string {
	good := !stored.Unconfirmed && !stored.DataDiffers
	switch {
	case good && next.Unconfirmed:
		return fmt.Sprintf("a quorum confirmed it, and no quorum confirmed that member %s has every write", next.Member)
	case good && next.DataDiffers:
		return "its data is not in doubt, and etcd reports now that the data of its members differs (alarm CORRUPT)"
	case !stored.DataDiffers && next.Revision < stored.Revision:
		why := fmt.Sprintf("it has revision %d, and member %s has only revision %d", stored.Revision, next.Member, next.Revision)
		if stored.ClusterID != "" && next.ClusterID != "" && stored.ClusterID != next.ClusterID {
			why += fmt.Sprintf(" of another etcd cluster (ID %s, the backup is of %s)", next.ClusterID, stored.ClusterID)
		}
		return why
	}
	return ""
}
