// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// TestDecryptionNeedsAnEncryptedBackup: a backup that is not encrypted may have been put in
// the place of one that was, and is not taken where identities are given.
func TestDecryptionNeedsAnEncryptedBackup(t *testing.T) {
	_, identitiesDir := ageSecrets(t)
	cluster := etcdtest.New(t)
	for _, naked := range []bool{false, true} {
		for _, compression := range []v1beta2.Compression{v1beta2.CompressionNone, v1beta2.CompressionZstd} {
			b := newBench(t, cluster)
			request := b.saveRequest("id-1", manifest.LayoutDirectory)
			request.Save.Compression = compression
			saved := b.mustRun(agent.CommandSave, request)
			if naked {
				if err := b.store.Delete(t.Context(), manifest.LayoutDirectory.ManifestKey(saved.Key)); err != nil {
					t.Fatal(err)
				}
			}
			result, name := b.fetch(saved.Key, func(r *agent.Request) { r.Fetch.IdentitiesDir = identitiesDir })
			if result.Error == nil || result.Error.Class != agent.ClassCorrupt || !strings.Contains(result.Error.Message, "not encrypted, but decryption is given") {
				t.Errorf("naked %t, %s: fetch: %v", naked, compression, result.Error)
			}
			if _, err := os.Stat(name); !os.IsNotExist(err) {
				t.Errorf("naked %t, %s: the file is there (%v)", naked, compression, err)
			}
			b.mustFail(agent.CommandVerify, &agent.Request{
				ID: "v", Store: b.storePlace("backups/etcd"), Verify: &agent.Verify{Expected: agent.Expected{Key: saved.Key}, IdentitiesDir: identitiesDir},
			}, agent.ClassCorrupt)
			if result, _ := b.fetch(saved.Key, nil); result.Error != nil {
				t.Errorf("naked %t, %s: without identities: %v", naked, compression, result.Error)
			}
		}
	}
}

// TestFetchedBeforeItWasReplaced: a file that an earlier attempt has fetched does not pass for
// an encrypted backup either.
func TestFetchedBeforeItWasReplaced(t *testing.T) {
	_, identitiesDir := ageSecrets(t)
	b := newBench(t, etcdtest.New(t))
	saved := b.mustRun(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutDirectory))
	request := &agent.Request{
		ID: "f", Store: b.storePlace("backups/etcd"),
		Fetch: &agent.Fetch{Expected: agent.Expected{Key: saved.Key}, File: filepath.Join(t.TempDir(), "snapshot.db")},
	}
	b.mustRun(agent.CommandFetch, request)
	request.Fetch.IdentitiesDir = identitiesDir
	b.mustFail(agent.CommandFetch, request, agent.ClassCorrupt)
}

// growing is a store whose snapshots become something large when they are read.
type growing struct {
	objectstore.Store

	content []byte
	size    int64
}

func (g *growing) Stat(ctx context.Context, key string) (objectstore.Object, error) {
	object, err := g.Store.Stat(ctx, key)
	if isSnapshot(key) && err == nil {
		object.Size = g.size
	}
	return object, err
}

func (g *growing) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if isSnapshot(key) {
		return io.NopCloser(bytes.NewReader(g.content[offset:])), nil
	}
	return g.Store.Get(ctx, key, offset, length)
}

// TestFetchWritesNoMoreThanItsManifestSays: an object that replaces the checked backup
// does not fill the disk, however well it is compressed.
func TestFetchWritesNoMoreThanItsManifestSays(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	b.cluster.Member("m0").Put(500)
	request := b.saveRequest("id-1", manifest.LayoutDirectory)
	request.Save.Compression = v1beta2.CompressionZstd
	saved := b.mustRun(agent.CommandSave, request)
	var bomb bytes.Buffer
	writer, err := zstd.NewWriter(&bomb)
	if err != nil {
		t.Fatal(err)
	}
	for range 8 {
		if _, err := writer.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	content := append(bomb.Bytes(), make([]byte, max(0, int(saved.StoredSize)-bomb.Len()))...)
	b.store = &growing{Store: b.store, content: content[:saved.StoredSize], size: saved.StoredSize}
	if int64(bomb.Len()) > saved.StoredSize {
		t.Fatalf("%d bytes are more than the %d of the backup", bomb.Len(), saved.StoredSize)
	}
	result, name := b.fetch(saved.Key, nil)
	if result.Error == nil || result.Error.Class != agent.ClassCorrupt || !strings.Contains(result.Error.Message, "it has more than the") {
		t.Errorf("got %v", result.Error)
	}
	if left := files(t, filepath.Dir(name)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestPlacesThatBeginAlike: the newest backup of a location is not a backup of a location
// whose name begins the same.
func TestPlacesThatBeginAlike(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	desired := b.mustRun(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutDirectory))
	b.cluster.Member("m0").Put(10)
	other := b.saveRequest("id-2", manifest.LayoutDirectory)
	other.Store = b.storePlace("backups/etcd2")
	b.mustRun(agent.CommandSave, other)
	result, name := b.fetch("", nil)
	if result.Error != nil {
		t.Fatal(result.Error)
	}
	mustHaveSum(t, name, desired.SHA256)
	if result, _ := b.fetch("", func(r *agent.Request) { r.Store = b.storePlace("backups/etc") }); result.Error == nil || result.Error.Class != agent.ClassNotFound {
		t.Errorf("part of a name: %v", result.Error)
	}
}

// discreet is a store as credentials see it that may write and read objects and nothing else:
// what is missing is denied.
type discreet struct{ objectstore.Store }

func (d discreet) hide(key string, err error) error {
	if err == nil {
		return nil
	}
	return &objectstore.Error{Op: "stat", Key: key, Kind: objectstore.ErrDenied, Cause: errors.New("403")}
}

func (d discreet) Stat(ctx context.Context, key string) (objectstore.Object, error) {
	object, err := d.Store.Stat(ctx, key)
	return object, d.hide(key, err)
}

func (d discreet) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	body, err := d.Store.Get(ctx, key, offset, length)
	return body, d.hide(key, err)
}

func (d discreet) List(_ context.Context, prefix string) iter.Seq2[objectstore.Object, error] {
	return func(yield func(objectstore.Object, error) bool) {
		yield(objectstore.Object{}, &objectstore.Error{Op: "list", Key: prefix, Kind: objectstore.ErrDenied})
	}
}

func (d discreet) Delete(_ context.Context, key string) error {
	return &objectstore.Error{Op: "delete", Key: key, Kind: objectstore.ErrDenied}
}

// TestCredentialsThatOnlyWriteAndRead: a backup is made with them; that nothing can be
// pruned takes nothing from it.
func TestCredentialsThatOnlyWriteAndRead(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	whole := b.store
	b.store = discreet{whole}
	request := b.saveRequest("id-1", manifest.LayoutDirectory)
	request.Prune = &agent.Prune{Layout: manifest.LayoutDirectory, Owner: owner, Count: 1}
	result := b.mustRun(agent.CommandSave, request)
	if !result.Verified || result.Warning == "" {
		t.Errorf("%+v", result)
	}
	// A restore finds it, although the store does not say which of the keys that are read do not exist.
	inS3 := func(key string) func(*agent.Request) {
		return func(r *agent.Request) {
			r.Store = &agent.Store{Type: v1beta2.BackupStorageTypeS3, Bucket: "b", Key: key}
		}
	}
	fetched, name := b.fetch(result.Key, inS3("backups/etcd"))
	if fetched.Error != nil || fetched.Revision != result.Revision {
		t.Fatalf("fetched %+v", fetched.Error)
	}
	mustHaveSum(t, name, result.SHA256)
	if fetched, _ = b.fetch("", inS3(filepath.Dir(result.Key))); fetched.Error != nil || fetched.Revision != result.Revision {
		t.Errorf("by its directory fetched %+v", fetched.Error)
	}
	for key, below := range map[string]string{"backups/other": "backups/etcd", "": "backups/etcd"} {
		fetched, _ = b.fetch(key, inS3(below))
		if fetched.Error == nil || fetched.Error.Class != agent.ClassStoreDenied || strings.Count(fetched.Error.Message, "s3:ListBucket") != 1 {
			t.Errorf("%q: got %v", key, fetched.Error)
		}
	}
	// A volume tells what does not exist.
	if fetched, _ = b.fetch(result.Key, nil); fetched.Error == nil || strings.Contains(fetched.Error.Message, "ListBucket") {
		t.Errorf("on a volume: got %v", fetched.Error)
	}
}

// TestDirectoryInTheWay: where a volume has a directory of the name that a backup is to have,
// the message says so, and the directory stays.
func TestDirectoryInTheWay(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	b.cluster.Member("m0").Put(500)
	if err := os.MkdirAll(filepath.Join(b.dir, "backups/etcd/kept"), 0o750); err != nil {
		t.Fatal(err)
	}
	result := b.run(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutObject))
	if result.Error == nil || result.Error.Class != agent.ClassExists || !strings.Contains(result.Error.Message, "a directory of the volume has this name") {
		t.Errorf("got %v", result.Error)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "backups/etcd/kept")); err != nil || len(b.objects()) > 0 {
		t.Errorf("%v; stored are %v", err, b.objects())
	}
}

// TestFileInTheWay: where a volume has a file of the name of a directory that the path needs, the
// message says so, no attempt follows, and the file stays.
func TestFileInTheWay(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	name := filepath.Join(b.dir, "backups")
	if err := os.WriteFile(name, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, layout := range []manifest.Layout{manifest.LayoutObject, manifest.LayoutSeries, manifest.LayoutDirectory} {
		result := b.run(agent.CommandSave, b.saveRequest("id-1", layout))
		if result.Error == nil || result.Error.Class != agent.ClassExists || !strings.Contains(result.Error.Message, "a file of the volume has the name of a directory") {
			t.Errorf("%s: got %v", layout, result.Error)
		}
	}
	if raw, err := os.ReadFile(name); err != nil || string(raw) != "mine" || len(b.objects()) != 1 {
		t.Errorf("%q, %v; stored are %v", raw, err, b.objects())
	}
}
