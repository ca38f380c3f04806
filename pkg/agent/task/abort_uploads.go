// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// defaultUploadAge is how old leftovers are that no running transfer can own.
const defaultUploadAge = 24 * time.Hour

// makeRoom deletes what interrupted transfers have left if a backup failed because its volume is full, and returns that
// failure. Otherwise leftovers are deleted only after a backup, so a volume that they have filled would stay full. No
// backup is deleted.
func (t *run) makeRoom(ctx context.Context, failed error) error {
	if t.request.AbortUploads == nil || !isFull(failed) {
		return failed
	}
	ctx, cancel := afterwards(ctx)
	defer cancel()
	if err := t.abortUploads(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot delete what interrupted transfers have left on a full volume")
	}
	if n := t.result.AbortedUploads; n > 0 {
		return fmt.Errorf("%w; %d leftovers of interrupted transfers were deleted, so the next attempt has more room", failed, n)
	}
	return failed
}

// abortUploads deletes what interrupted transfers have left: uploads that were not
// completed, and snapshots in directories that never got a manifest. It touches only keys
// that this program gives: what a user puts beside the backups has no manifest either.
func (t *run) abortUploads(ctx context.Context) error {
	s := t.request.AbortUploads
	age := defaultUploadAge
	if s.OlderThanSeconds > 0 {
		age = time.Duration(s.OlderThanSeconds) * time.Second
	}
	now, _, err := t.clocks(ctx)
	if err != nil {
		return err
	}
	before := now.Add(-age)
	place := manifest.Place{Layout: s.Layout, Key: t.request.Store.Key, Owner: s.Owner}
	aborted, err := t.store.AbortUploads(ctx, place.Prefix(), place.IsOwnSnapshot, before)
	t.result.AbortedUploads += aborted
	if err != nil || place.Layout != manifest.LayoutDirectory {
		return err
	}
	// Other layouts are left alone: a snapshot there may be one that an older program
	// has made, which wrote no manifests.
	objects, err := t.below(ctx, place.Prefix())
	if err != nil {
		return err
	}
	complete := map[string]bool{}
	var old []string
	for _, object := range objects {
		switch {
		case manifest.IsManifest(object.Key):
			complete[path.Dir(object.Key)] = true
		case place.IsOwnSnapshot(object.Key) && object.Modified.Before(before):
			old = append(old, object.Key)
		}
	}
	var left skipped
	for _, key := range old {
		if complete[path.Dir(key)] {
			continue
		}
		switch deleted, err := t.deleteUnfinished(ctx, key, place.Layout.ManifestKey(key)); {
		case objectstore.IsOfObject(err):
			left.add(key, err)
		case err != nil:
			return err
		case deleted:
			t.result.AbortedUploads++
			klog.FromContext(ctx).Info("Deleted a snapshot without a manifest", "key", key)
		}
	}
	return left.err("these snapshots have no manifest in the list of objects, and are not deleted")
}

// deleteUnfinished deletes a snapshot whose manifest does not exist, and returns whether it did. It requests the
// manifest itself: a list of objects may be old, or may leave objects out.
func (t *run) deleteUnfinished(ctx context.Context, key, manifestKey string) (bool, error) {
	_, err := t.store.Stat(ctx, manifestKey)
	if err == nil {
		return false, nil
	}
	if !errors.Is(err, objectstore.ErrNotFound) {
		return false, err
	}
	err = t.store.Delete(ctx, key)
	return err == nil, err
}
