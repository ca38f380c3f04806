// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// storing returns a proxy of a store: objects under the given keys are changed and stored,
// and the response is an error.
func storing(whole objectstore.Store, meant func(key string) bool, change func([]byte) []byte, response error) *breaking {
	return &breaking{Store: whole, put: func(ctx context.Context, key string, r io.Reader) error {
		if !meant(key) {
			return nil
		}
		raw, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		return errors.Join(objectstore.PutBytes(ctx, whole, key, change(raw), objectstore.PutOptions{Overwrite: true}), response)
	}}
}

func same(raw []byte) []byte { return raw }

func isSnapshot(key string) bool { return !manifest.IsManifest(key) }

// TestLostResponses: a store that has what was sent, and rejects it when it is sent
// again, has it from this transfer only if it is the same.
func TestLostResponses(t *testing.T) {
	cluster := etcdtest.New(t)
	exists := &objectstore.Error{Op: "put", Key: "k", Kind: objectstore.ErrExists}
	swap := func(from, to string) func([]byte) []byte {
		return func(raw []byte) []byte { return bytes.Replace(raw, []byte(from), []byte(to), 1) }
	}
	for name, test := range map[string]struct {
		meant    func(string) bool
		change   func([]byte) []byte
		response error
		want     agent.ErrorClass
	}{
		"a snapshot":                {isSnapshot, same, exists, ""},
		"another snapshot":          {isSnapshot, func(raw []byte) []byte { return flipped(raw, 5000) }, exists, agent.ClassStore},
		"a manifest":                {manifest.IsManifest, same, exists, ""},
		"that of another transfer":  {manifest.IsManifest, swap(`"id": "id-1"`, `"id": "id-2"`), exists, agent.ClassExists},
		"that of another snapshot":  {manifest.IsManifest, swap(`"storedSHA256": "`, `"storedSHA256": "0000000000000000000000000000000000000000000000000000000000000000", "x": "`), exists, agent.ClassExists},
		"a snapshot, after a reset": {isSnapshot, same, &objectstore.Error{Op: "put", Cause: errors.New("reset")}, agent.ClassStore},
		"a manifest, after a reset": {manifest.IsManifest, same, &objectstore.Error{Op: "put", Cause: errors.New("reset")}, agent.ClassStore},
	} {
		b := newBench(t, cluster)
		b.store = storing(b.store, test.meant, test.change, test.response)
		result := b.run(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutDirectory))
		class := agent.ErrorClass("")
		if result.Error != nil {
			class = result.Error.Class
		}
		if class != test.want {
			t.Errorf("%s: got %v, want %q", name, result.Error, test.want)
		}
		if left := b.objects(); test.want == agent.ClassStore && !errors.Is(test.response, objectstore.ErrExists) && len(left) > 0 {
			t.Errorf("%s: left behind %v", name, left)
		} else if test.want == agent.ClassExists && len(left) != 2 {
			t.Errorf("%s: objects of another owner were deleted, left are %v", name, left)
		}
	}
}

// TestNothingIsOverwritten that is a backup: that of another transfer stays, and the manifest
// of what is overwritten goes before it is.
func TestNothingIsOverwritten(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	first := b.saveRequest("id-1", manifest.LayoutSeries)
	saved := b.mustRun(agent.CommandSave, first)
	second := b.saveRequest("id-2", manifest.LayoutSeries)
	second.Save.Started = first.Save.Started
	b.mustFail(agent.CommandSave, second, agent.ClassExists)
	b.checkSaved(saved, "", false)

	b = newBench(t, b.cluster)
	b.mustRun(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutObject))
	whole := b.store
	b.store = &breaking{Store: whole, put: func(_ context.Context, key string, _ io.Reader) error {
		if !manifest.IsManifest(key) {
			return nil
		}
		if _, err := whole.Stat(t.Context(), key); !errors.Is(err, objectstore.ErrNotFound) {
			t.Errorf("the manifest of what was overwritten is there: %v", err)
		}
		return nil
	}}
	b.mustRun(agent.CommandSave, b.saveRequest("id-2", manifest.LayoutObject))
}

// TestNewestIsFetched from a place with several.
func TestNewestIsFetched(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	var last *agent.Result
	for i := range 3 {
		last = b.mustRun(agent.CommandSave, b.saveRequest(fmt.Sprintf("id-%d", i), manifest.LayoutDirectory))
		b.cluster.Member("m0").Put(1)
	}
	if result, _ := b.fetch("", nil); result.Error != nil || result.Revision != last.Revision || result.Key != last.Key {
		t.Errorf("fetched %+v, want revision %d", result, last.Revision)
	}
	transfer := func(id string) func(*agent.Request) { return func(r *agent.Request) { r.Fetch.ID = id } }
	if result, _ := b.fetch("", transfer("id-1")); result.Error != nil || result.Revision != last.Revision-1 {
		t.Errorf("of transfer id-1 fetched %+v, want revision %d", result, last.Revision-1)
	}
	if result, _ := b.fetch("", transfer("id-9")); result.Error == nil || result.Error.Class != agent.ClassNotFound {
		t.Errorf("of a transfer that stored nothing fetched %+v", result)
	}
}

// TestVerifyWithoutTheKey: the identity and the size of a backup are checked without the
// key, too. The check leaves nothing behind.
func TestVerifyWithoutTheKey(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	recipientsDir, _ := ageSecrets(t)
	request := b.saveRequest("id-1", manifest.LayoutDirectory)
	request.Save.RecipientsDir = recipientsDir
	saved := b.mustRun(agent.CommandSave, request)
	verify := func(e agent.Expected) *agent.Request {
		return &agent.Request{ID: "v", Store: b.storePlace("backups/etcd"), Verify: &agent.Verify{Expected: e}}
	}
	b.mustRun(agent.CommandVerify, verify(agent.Expected{SHA256: saved.SHA256, MaxSize: saved.Size}))
	b.mustFail(agent.CommandVerify, verify(agent.Expected{SHA256: saved.StoredSHA256}), agent.ClassCorrupt)
	b.mustFail(agent.CommandVerify, verify(agent.Expected{MaxSize: saved.Size - 1}), agent.ClassUnsupported)

	b = newBench(t, b.cluster)
	plain := b.mustRun(agent.CommandSave, b.saveRequest("id-2", manifest.LayoutObject))
	if err := b.store.Delete(t.Context(), manifest.LayoutObject.ManifestKey(plain.Key)); err != nil {
		t.Fatal(err)
	}
	b.mustRun(agent.CommandVerify, verify(agent.Expected{Key: plain.Key}))
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind %v, %v", left, err)
	}
}

// TestTimeouts: an attempt ends with its time-out, and the store hears of the other one.
func TestTimeouts(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	request := b.saveRequest("id-1", manifest.LayoutDirectory)
	request.TimeoutSeconds, request.StallTimeoutSeconds = 1, 7
	b.store = &breaking{Store: b.store, put: func(ctx context.Context, _ string, _ io.Reader) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}}
	open, stalls := b.runner.Open, []time.Duration{}
	b.runner.Open = func(ctx context.Context, s *agent.Store, stall time.Duration) (objectstore.Store, error) {
		stalls = append(stalls, stall)
		return open(ctx, s, stall)
	}
	b.mustFail(agent.CommandSave, request, agent.ClassStalled)
	if len(stalls) != 1 || stalls[0] != 7*time.Second {
		t.Errorf("the store is opened with %v", stalls)
	}
}

// keeping is a store that deletes no manifest.
type keeping struct{ objectstore.Store }

func (k keeping) Delete(ctx context.Context, key string) error {
	if manifest.IsManifest(key) {
		return errors.New("kept")
	}
	return k.Store.Delete(ctx, key)
}

// TestManifestGoesFirst: as long as it is there, so is what it describes.
func TestManifestGoesFirst(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	whole, request := b.store, b.saveRequest("id-1", manifest.LayoutDirectory)
	b.store = keeping{storing(whole, manifest.IsManifest, same, errors.New("reset"))}
	if result := b.run(agent.CommandSave, request); result.Error == nil || len(b.objects()) != 2 {
		t.Errorf("%v, left are %v", result.Error, b.objects())
	}
	b.store = whole
	if result := b.mustRun(agent.CommandSave, request); !result.AlreadyDone {
		t.Error("what is whole is made again")
	}
}

// TestTidyingIsNoBackup: the result reports a failure after a backup, and the backup stays.
func TestTidyingIsNoBackup(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	b.mustRun(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutDirectory))
	request := b.saveRequest("id-2", manifest.LayoutDirectory)
	request.Save.Started = request.Save.Started.Add(time.Second)
	request.AbortUploads = &agent.AbortUploads{Layout: manifest.LayoutDirectory, Owner: owner}
	old := time.Now().Add(-25 * time.Hour)
	orphan := filepath.Join(b.dir, manifest.Place{Layout: manifest.LayoutDirectory, Key: "backups/etcd", Owner: owner}.SnapshotKey("x", old, 1, "", ""))
	if err := errors.Join(os.MkdirAll(filepath.Dir(orphan), 0o750), os.WriteFile(orphan, []byte("x"), 0o600), os.Chtimes(orphan, old, old)); err != nil {
		t.Fatal(err)
	}
	request.Prune = &agent.Prune{Layout: manifest.LayoutDirectory, Owner: owner, Count: 1}
	whole := b.store
	b.store = keeping{whole}
	if result := b.mustRun(agent.CommandSave, request); result.Warning != "kept" || result.Pruned != 0 || result.AbortedUploads != 1 {
		t.Errorf("it says %+v", result)
	}
	b.store = whole
	if result := b.mustRun(agent.CommandSave, request); !result.AlreadyDone || result.Pruned != 1 || result.Warning != "" {
		t.Errorf("it says %+v", result)
	}
}
