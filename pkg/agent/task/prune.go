// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"path"
	"time"

	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// defaultSweepAge is how old leftovers are that no running transfer can own.
const defaultSweepAge = 24 * time.Hour

// prune deletes what the retention lets go. Only what has a manifest of this owner is
// counted and deleted; the newest such backup always stays.
func (t *run) prune(ctx context.Context) error {
	t.Progress.Begin("Prune", 0)
	p := t.request.Prune
	place := manifest.Place{Layout: p.Layout, Key: t.request.Store.Key, Owner: p.Owner}
	all, err := t.list(ctx, place.Prefix(), func(string) bool { return true })
	if err != nil {
		return err
	}
	var ours []manifest.Stored
	for _, s := range all {
		if place.InPlace(s.Key, s.Manifest) {
			ours = append(ours, s)
		}
	}
	retention := manifest.Retention{Count: int(p.Count), MaxAge: time.Duration(p.MaxAgeSeconds) * time.Second}
	for _, s := range manifest.Prunable(ours, retention, t.Clock.Now()) {
		// Without a manifest it is no backup any more, whatever happens then.
		if err := t.store.Delete(ctx, s.Key); err != nil {
			return err
		}
		if err := t.store.Delete(ctx, s.Manifest.SnapshotKey(s.Key)); err != nil {
			return err
		}
		t.result.Pruned++
		klog.FromContext(ctx).Info("Pruned", "key", s.Key, "revision", s.Manifest.Revision, "finishedAt", s.Manifest.FinishedAt)
	}
	return nil
}

// sweep deletes what interrupted transfers have left: uploads that were not
// completed, and snapshots in directories that never got a manifest.
func (t *run) sweep(ctx context.Context) error {
	t.Progress.Begin("Sweep", 0)
	s := t.request.Sweep
	age := defaultSweepAge
	if s.OlderThanSeconds > 0 {
		age = time.Duration(s.OlderThanSeconds) * time.Second
	}
	before := t.Clock.Now().Add(-age)
	place := manifest.Place{Layout: s.Layout, Key: t.request.Store.Key, Owner: s.Owner}
	swept, err := t.store.Sweep(ctx, place.Prefix(), before)
	t.result.Swept += swept
	if err != nil || place.Layout != manifest.LayoutDirectory {
		return err
	}
	// Other layouts are not swept: a snapshot there may be one that an older program
	// has made, which wrote no manifests.
	complete := map[string]bool{}
	var old []string
	for object, err := range t.store.List(ctx, place.Prefix()) {
		switch {
		case err != nil:
			return err
		case manifest.IsManifest(object.Key):
			complete[path.Dir(object.Key)] = true
		case object.Modified.Before(before):
			old = append(old, object.Key)
		}
	}
	for _, key := range old {
		if complete[path.Dir(key)] {
			continue
		}
		if err := t.store.Delete(ctx, key); err != nil {
			return err
		}
		t.result.Swept++
		klog.FromContext(ctx).Info("Swept", "key", key)
	}
	return nil
}
