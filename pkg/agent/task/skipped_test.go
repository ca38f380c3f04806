// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// partial is a store that rejects to read or to delete some objects, or leaves some out of its lists.
type partial struct {
	objectstore.Store

	unreadable, held, unlisted []string
}

func (p *partial) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if slices.Contains(p.unreadable, key) {
		return nil, &objectstore.Error{Op: "get", Key: key, Kind: objectstore.ErrUnreadable, Cause: errors.New("archived")}
	}
	return p.Store.Get(ctx, key, offset, length)
}

func (p *partial) Delete(ctx context.Context, key string) error {
	if slices.Contains(p.held, key) {
		return &objectstore.Error{Op: "delete", Key: key, Kind: objectstore.ErrDenied, Cause: errors.New("legal hold")}
	}
	if len(p.held) > 0 { // slow enough to hear of what has failed meanwhile
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return p.Store.Delete(ctx, key)
}

func (p *partial) List(ctx context.Context, prefix string) iter.Seq2[objectstore.Object, error] {
	return func(yield func(objectstore.Object, error) bool) {
		for object, err := range p.Store.List(ctx, prefix) {
			if !slices.Contains(p.unlisted, object.Key) && !yield(object, err) {
				return
			}
		}
	}
}

// snapshotOf returns the key of the snapshot beside a manifest that keep has stored.
func snapshotOf(manifestKey string) string { return path.Join(path.Dir(manifestKey), "snapshot.db") }

// TestRetentionGoesOnWithoutAnObject that the store does not return or delete. The object stays, and the message names it.
// The newest backup of a past cluster is spared anyway.
func TestRetentionGoesOnWithoutAnObject(t *testing.T) {
	at := time.Date(2026, 11, 1, 3, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		store func(keys []string) *partial
		left  string
	}{
		"the oldest is archived":                   {func(keys []string) *partial { return &partial{unreadable: keys[:1]} }, "100111"},
		"two are archived":                         {func(keys []string) *partial { return &partial{unreadable: keys[1:3]} }, "011111"},
		"the newest of a past cluster is archived": {func(keys []string) *partial { return &partial{unreadable: keys[3:4]} }, "001111"},
		"one is under a hold":                      {func(keys []string) *partial { return &partial{held: keys[1:2]} }, "010111"},
		"the snapshot of one is under a hold":      {func(keys []string) *partial { return &partial{held: []string{snapshotOf(keys[1])}} }, "010111"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			past := manifest.Owner{Namespace: owner.Namespace, Name: owner.Name, UID: "past"}
			var keys []string
			for i, of := range []manifest.Owner{owner, owner, past, past, owner, owner} {
				keys = append(keys, b.keep(of, "mine", at.Add(time.Duration(i)*time.Hour), int64(i+1)))
			}
			store := test.store(keys)
			store.Store = b.store
			b.store = store
			result := b.run(agent.CommandPrune, b.pruneRequest(2, 0))
			b.store = store.Store
			if left := b.left(keys); left != test.left {
				t.Errorf("left are %s, want %s", left, test.left)
			}
			if result.Error == nil || result.Error.Class != agent.ClassStoreDenied || result.Pruned != strings.Count(test.left, "0") {
				t.Fatalf("it says %+v, deleted %d", result.Error, result.Pruned)
			}
			for _, key := range append(store.unreadable, store.held...) {
				if !strings.Contains(result.Error.Message, path.Dir(key)) {
					t.Errorf("%q does not name %s", result.Error.Message, key)
				}
			}
		})
	}
}

// TestNewestThatCanBeRead: what the store does not return, and half a copy of a backup, hide no other backup.
func TestNewestThatCanBeRead(t *testing.T) {
	at := time.Date(2026, 11, 1, 3, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		archived, halves int
		revision         int64
		class            agent.ErrorClass
	}{
		"all are whole":              {revision: 3},
		"the newest is archived":     {archived: 1, revision: 2},
		"only archived ones":         {archived: 3, class: agent.ClassStoreDenied},
		"the newest has no snapshot": {halves: 1, revision: 2},
		"none has a snapshot":        {halves: 3, revision: 3, class: agent.ClassCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			store := &partial{Store: b.store}
			b.store = store
			for i := range 3 {
				key := b.keep(owner, "", at.Add(-time.Duration(i)*time.Hour), int64(3-i))
				if i < test.archived {
					store.unreadable = append(store.unreadable, key)
				}
				if i < test.halves {
					if err := os.Remove(filepath.Join(b.dir, filepath.Dir(key), "snapshot.db")); err != nil {
						t.Fatal(err)
					}
				}
			}
			result := b.run(agent.CommandVerify, &agent.Request{ID: "v", Store: b.storePlace("backups/etcd"), Verify: &agent.Verify{}})
			if test.class == "" && result.Revision != test.revision {
				t.Errorf("found revision %d, want %d: %v", result.Revision, test.revision, result.Error)
			}
			if test.class != "" && (result.Error == nil || result.Error.Class != test.class) {
				t.Errorf("got %v, want %s", result.Error, test.class)
			}
			for _, key := range store.unreadable {
				if test.class != "" && !strings.Contains(result.Error.Message, key) {
					t.Errorf("%q does not name %s", result.Error.Message, key)
				}
			}
		})
	}
}

// TestCleanupAsksForTheManifest: a list of objects that leaves a manifest out costs no backup. A snapshot that the store
// does not delete keeps no other leftover.
func TestCleanupAsksForTheManifest(t *testing.T) {
	b := newBench(t, nil)
	old := time.Now().Add(-48 * time.Hour)
	place := manifest.Place{Layout: manifest.LayoutDirectory, Key: "backups/etcd", Owner: owner}
	kept := b.plant(place.SnapshotKey("0123456780", old, 1, "", ""), old)
	unlisted := b.plant(place.Layout.ManifestKey(kept), old)
	held := b.plant(place.SnapshotKey("0123456781", old, 2, "", ""), old)
	leftover := b.plant(place.SnapshotKey("0123456782", old, 3, "", ""), old)
	b.store = &partial{Store: b.store, unlisted: []string{unlisted}, held: []string{held}}
	result := b.run(agent.CommandAbortUploads, &agent.Request{ID: "s", Store: b.storePlace("backups/etcd"), AbortUploads: &agent.AbortUploads{Layout: manifest.LayoutDirectory, Owner: owner}})
	if left := b.files([]string{kept, held, leftover}); left != "110" || result.AbortedUploads != 1 {
		t.Errorf("left are %s, deleted %d", left, result.AbortedUploads)
	}
	if result.Error == nil || !strings.Contains(result.Error.Message, held) || strings.Contains(result.Error.Message, kept) {
		t.Errorf("it says %v", result.Error)
	}
}

// undeletable is a store whose credentials may not delete.
type undeletable struct{ objectstore.Store }

func (undeletable) Delete(_ context.Context, key string) error {
	return &objectstore.Error{Op: "delete", Key: key, Kind: objectstore.ErrDenied, Cause: errors.New("s3:DeleteObject")}
}

// TestCleanUpDoesNotHideTheFailure: credentials that may not delete change the message of a failed upload, not its class.
func TestCleanUpDoesNotHideTheFailure(t *testing.T) {
	cluster := etcdtest.New(t)
	reset := &objectstore.Error{Op: "put", Key: "k", Cause: errors.New("reset by the store")}
	for name, fault := range map[string]breaking{
		"while the snapshot is stored": {put: func(_ context.Context, key string, _ io.Reader) error { return unlessManifest(key, reset) }},
		"while the manifest is stored": {put: func(_ context.Context, key string, _ io.Reader) error { return onlyManifest(key, reset) }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, cluster)
			fault.Store = undeletable{b.store}
			b.store = &fault
			result := b.run(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutDirectory))
			if result.Error == nil || result.Error.Class != agent.ClassStore {
				t.Fatalf("got %v, want %s", result.Error, agent.ClassStore)
			}
			for _, part := range []string{"reset by the store", "s3:DeleteObject"} {
				if !strings.Contains(result.Error.Message, part) {
					t.Errorf("%q does not say %q", result.Error.Message, part)
				}
			}
		})
	}
}
