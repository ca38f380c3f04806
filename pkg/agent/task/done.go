// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// findDone returns what an earlier attempt of this transfer has finished, or nil. The ID does not tell the transfer of a
// copy of the Kubernetes cluster, whose objects have the same UIDs. The ID of the etcd cluster does.
func (t *run) findDone(ctx context.Context, place manifest.Place) (*manifest.Stored, error) {
	isSource := t.isSource(ctx)
	if place.Layout == manifest.LayoutObject {
		key := place.Layout.ManifestKey(place.Key)
		m, err := t.readManifest(ctx, key)
		if isNoManifest(err) {
			return nil, nil // the existing object is overwritten
		}
		if err != nil || m.ID != t.request.ID || !isSource(m) {
			return nil, err
		}
		return t.whole(ctx, &manifest.Stored{Key: key, Manifest: m})
	}
	for object, err := range t.store.List(ctx, place.AttemptPrefix(t.request.Save.Started)) {
		if err != nil {
			return nil, err
		}
		if !manifest.IsManifest(object.Key) || !place.OfAttempt(object.Key, t.request.Save.Started) {
			continue
		}
		if place.Layout == manifest.LayoutDirectory && object.Modified.Add(maxAhead).Before(t.request.Save.Started) {
			continue // it was stored before it was due, by a clock that was ahead and has been set back since
		}
		m, err := t.readManifest(ctx, object.Key)
		switch {
		case isNoManifest(err):
		case err != nil:
			return nil, err
		case m.ID == t.request.ID && place.IsInPlace(object.Key, m) && isSource(m):
			if done, err := t.whole(ctx, &manifest.Stored{Key: object.Key, Manifest: m}); done != nil || err != nil {
				return done, err
			}
		}
	}
	return nil, nil
}

// isSource returns whether a backup is of the cluster that the members are of now. It requests their status for the first
// backup only. If no member responds, or the backup does not tell its cluster, nothing speaks against it.
func (t *run) isSource(ctx context.Context) func(*manifest.Manifest) bool {
	clusters := sync.OnceValue(func() []string { return t.clusterIDs(ctx) })
	return func(m *manifest.Manifest) bool {
		if m.ClusterID == "" || len(clusters()) == 0 || slices.Contains(clusters(), m.ClusterID) {
			return true
		}
		klog.FromContext(ctx).Info("Another cluster has stored a backup for this transfer", "clusterID", m.ClusterID, "want", clusters())
		return false
	}
}

// clusterIDs returns the cluster IDs that the members report, as manifests have them; none if no member responds.
func (t *run) clusterIDs(ctx context.Context) []string {
	goal, err := target(t.request.Etcd)
	if err != nil {
		return nil // what is stored needs no certificate of etcd
	}
	var ids []string
	for _, status := range t.Pool.Client(goal).Statuses(ctx) {
		if status.Err == nil {
			ids = append(ids, clusterIDOf(&status.Health))
		}
	}
	return ids
}

// clusterIDOf returns the ID of the cluster of a member, as manifests have it.
func clusterIDOf(health *etcd.MemberHealth) string { return strconv.FormatUint(health.ClusterID, 16) }

// whole returns a backup of this transfer if its snapshot is there. A manifest alone, which
// arrived after it was taken back, is no backup and is deleted: it must not look like one.
func (t *run) whole(ctx context.Context, s *manifest.Stored) (*manifest.Stored, error) {
	object, err := t.store.Stat(ctx, s.Manifest.SnapshotKey(s.Key))
	switch {
	case err == nil && object.Size == s.Manifest.StoredSize:
		return s, nil
	case err != nil && !errors.Is(err, objectstore.ErrNotFound):
		return nil, err
	}
	klog.FromContext(ctx).Info("Deleting a manifest without its snapshot", "key", s.Key)
	return nil, t.store.Delete(ctx, s.Key)
}

// isNoManifest is true of an error of readManifest that is only about this manifest: nothing usable is there, or the
// store does not return it.
func isNoManifest(err error) bool {
	return errors.Is(err, objectstore.ErrNotFound) || errors.Is(err, manifest.ErrInvalid) || errors.Is(err, objectstore.ErrUnreadable)
}

func (t *run) readManifest(ctx context.Context, key string) (*manifest.Manifest, error) {
	s, err := t.readStored(ctx, objectstore.Object{Key: key})
	return s.Manifest, err
}

// readStored reads the manifest of a stored backup.
func (t *run) readStored(ctx context.Context, object objectstore.Object) (manifest.Stored, error) {
	s := manifest.Stored{Key: object.Key, Modified: object.Modified}
	var err error
	if s.Raw, err = objectstore.ReadAll(ctx, t.store, object.Key, manifest.MaxSize); err != nil {
		return s, err
	}
	s.Manifest, err = manifest.Decode(s.Raw)
	return s, err
}
