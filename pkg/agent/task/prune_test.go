// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// counting counts the requests that a store gets, and how many reads run at once.
type counting struct {
	objectstore.Store

	lists, gets, deletes, stats atomic.Int64
	now, most                   atomic.Int64
	// latency of each read.
	latency time.Duration
}

func (c *counting) List(ctx context.Context, prefix string) iter.Seq2[objectstore.Object, error] {
	c.lists.Add(1)
	return c.Store.List(ctx, prefix)
}

func (c *counting) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	c.gets.Add(1)
	if now := c.now.Add(1); now > c.most.Load() {
		c.most.Store(now)
	}
	defer c.now.Add(-1)
	if c.latency > 0 {
		select {
		case <-time.After(c.latency):
		case <-ctx.Done():
		}
	}
	return c.Store.Get(ctx, key, offset, length)
}

func (c *counting) Delete(ctx context.Context, key string) error {
	c.deletes.Add(1)
	return c.Store.Delete(ctx, key)
}

func (c *counting) Stat(ctx context.Context, key string) (objectstore.Object, error) {
	c.stats.Add(1)
	return c.Store.Stat(ctx, key)
}

// keep stores a backup that was finished at a time, and returns the key of its manifest.
func (b *bench) keep(of manifest.Owner, madeBy string, at time.Time, revision int64) string {
	b.t.Helper()
	place := manifest.Place{Layout: manifest.LayoutDirectory, Key: "backups/etcd", Owner: of}
	key := place.SnapshotKey("id", at.Add(-time.Minute), revision, "", "")
	sum := strings.Repeat("ab", 32)
	m := &manifest.Manifest{
		FormatVersion: manifest.FormatVersion, ID: "id", Object: "snapshot.db", Layout: manifest.LayoutDirectory, Owner: of, BackupUID: madeBy,
		Revision: revision, Size: 1, SHA256: sum, StoredSize: 1, StoredSHA256: sum, StartedAt: at.Add(-time.Minute), FinishedAt: at,
	}
	raw, err := m.Encode()
	if err != nil {
		b.t.Fatal(err)
	}
	manifestKey := place.Layout.ManifestKey(key)
	for at, content := range map[string][]byte{key: []byte("x"), manifestKey: raw} {
		// Quicker than the store, which syncs each file.
		name := filepath.Join(b.dir, at)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o750), os.WriteFile(name, content, 0o600)); err != nil {
			b.t.Fatal(err)
		}
	}
	return manifestKey
}

func (b *bench) pruneRequest(count int32, maxAge time.Duration) *agent.Request {
	return &agent.Request{ID: "p", Store: b.storePlace("backups/etcd"), Prune: &agent.Prune{
		Layout: manifest.LayoutDirectory, Owner: owner, BackupUID: "mine", Count: count, MaxAgeSeconds: int64(maxAge / time.Second),
	}}
}

// left returns which of the keys are still there, as a text of ones and zeros.
func (b *bench) left(keys []string) string {
	b.t.Helper()
	there := map[string]bool{}
	for _, key := range b.objects() {
		there[key] = true
	}
	var text strings.Builder
	for _, key := range keys {
		if there[key] {
			text.WriteByte('1')
		} else {
			text.WriteByte('0')
		}
	}
	return text.String()
}

// TestPruneOfEarlierClusters: a cluster was made again under the same name. Keys are listed
// the oldest first: four of the earlier cluster, then three of the present one.
func TestPruneOfEarlierClusters(t *testing.T) {
	earlier := manifest.Owner{Namespace: owner.Namespace, Name: owner.Name, UID: "earlier"}
	for name, test := range map[string]struct {
		madeBy string
		count  int32
		age    time.Duration
		want   string
		spared bool
		others int
	}{
		"count keeps the last backup":      {"mine", 2, 0, "0001011", true, 0},
		"count that reaches back":          {"mine", 5, 0, "0011111", false, 0},
		"age":                              {"mine", 0, 4*time.Hour + time.Minute, "0001111", false, 0},
		"age takes the last one, too":      {"mine", 2, 3*time.Hour + time.Minute, "0000011", false, 0},
		"made by another EtcdBackup":       {"another", 1, time.Minute, "1111001", false, 4},
		"the manifest names no EtcdBackup": {"", 1, 0, "1111001", false, 4},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			now := time.Now().UTC().Truncate(time.Second)
			var keys []string
			for i := range 7 {
				of := owner
				if i < 4 {
					of = earlier
				}
				keys = append(keys, b.keep(of, test.madeBy, now.Add(-time.Duration(7-i)*time.Hour), int64(100-i)))
			}
			// Backups of other clusters, even if their names begin alike.
			var others []string
			for i, of := range []manifest.Owner{{Namespace: "ns", Name: "c-x", UID: "1"}, {Namespace: "ns", Name: "d", UID: "1"}, {Namespace: "n", Name: "c", UID: "u"}} {
				others = append(others, b.keep(of, "mine", now.Add(-time.Duration(100+i)*time.Hour), 1))
			}
			result := b.mustRun(agent.CommandPrune, b.pruneRequest(test.count, test.age))
			if got := b.left(keys); got != test.want {
				t.Errorf("left are %s, want %s", got, test.want)
			}
			if got := b.left(others); got != "111" {
				t.Errorf("of other clusters are left %s", got)
			}
			if (result.Spared != "") != test.spared || result.Unproved != test.others || (result.UnprovedAt != "") != (test.others > 0) {
				t.Errorf("the result says spared %q, unproved %d at %q", result.Spared, result.Unproved, result.UnprovedAt)
			}
			if result.Pruned != strings.Count(test.want, "0") {
				t.Errorf("pruned %d", result.Pruned)
			}
		})
	}
}

// TestPruneNeedsFewRequests: each backup costs one listing and as many reads as are deleted,
// however many are stored.
func TestPruneNeedsFewRequests(t *testing.T) {
	for _, stored := range []int{20, 500} {
		t.Run(fmt.Sprint(stored), func(t *testing.T) {
			b := newBench(t, nil)
			now := time.Now().UTC().Truncate(time.Second)
			var keys []string
			for i := range stored {
				keys = append(keys, b.keep(owner, "mine", now.Add(-time.Duration(stored-i)*time.Hour), int64(i)))
			}
			store := &counting{Store: b.store}
			b.store = store
			if result := b.mustRun(agent.CommandPrune, b.pruneRequest(int32(stored-1), 0)); result.Pruned != 1 {
				t.Errorf("pruned %d", result.Pruned)
			}
			t.Logf("%d stored: %d lists, %d reads, %d deletes, %d stats", stored, store.lists.Load(), store.gets.Load(), store.deletes.Load(), store.stats.Load())
			if store.lists.Load() != 1 || store.gets.Load() > 2 || store.deletes.Load() != 2 || store.stats.Load() != 0 {
				t.Errorf("%d lists, %d reads, %d deletes, %d stats", store.lists.Load(), store.gets.Load(), store.deletes.Load(), store.stats.Load())
			}
			if got := b.left(keys); got != "0"+strings.Repeat("1", stored-1) {
				t.Errorf("left are %s", got)
			}
		})
	}
}

// TestPruneReadsSeveralAtOnce: a retention that was shortened has much to read and to delete.
func TestPruneReadsSeveralAtOnce(t *testing.T) {
	b := newBench(t, nil)
	now := time.Now().UTC().Truncate(time.Second)
	for i := range 60 {
		b.keep(owner, "mine", now.Add(-time.Duration(60-i)*time.Hour), int64(i))
	}
	store := &counting{Store: b.store, latency: 20 * time.Millisecond}
	b.store = store
	if result := b.mustRun(agent.CommandPrune, b.pruneRequest(3, 0)); result.Pruned != 57 {
		t.Errorf("pruned %d", result.Pruned)
	}
	if most := store.most.Load(); most < 2 || most > parallelCalls {
		t.Errorf("%d reads at once, want more than one and at most %d", most, parallelCalls)
	}
}

// TestPruneTrustsManifests: a name chooses what is read, and the manifest decides.
func TestPruneTrustsManifests(t *testing.T) {
	b := newBench(t, nil)
	now := time.Now().UTC().Truncate(time.Second)
	old, late, damaged, halved, good, newest := b.keep(owner, "mine", now.Add(-9*time.Hour), 1), b.keep(owner, "mine", now.Add(-8*time.Hour), 2),
		b.keep(owner, "mine", now.Add(-7*time.Hour), 3), b.keep(owner, "mine", now.Add(-6*time.Hour), 4),
		b.keep(owner, "mine", now.Add(-5*time.Minute), 5), b.keep(owner, "mine", now.Add(-time.Minute), 6)
	rewrite := func(key string, content []byte) {
		t.Helper()
		if err := objectstore.PutBytes(t.Context(), b.store, key, content, objectstore.PutOptions{Overwrite: true}); err != nil {
			t.Fatal(err)
		}
	}
	// It was due long ago and made a moment ago.
	raw, err := objectstore.ReadAll(t.Context(), b.store, late, manifest.MaxSize)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	m.FinishedAt = now.Add(-10 * time.Minute)
	if raw, err = m.Encode(); err != nil {
		t.Fatal(err)
	}
	rewrite(late, raw)
	rewrite(damaged, []byte("{"))
	// A newest one that cannot be read is not the newest good one.
	rewrite(newest, []byte("{"))
	if err := b.store.Delete(t.Context(), strings.TrimSuffix(halved, "manifest.json")+"snapshot.db"); err != nil {
		t.Fatal(err)
	}
	b.mustRun(agent.CommandPrune, b.pruneRequest(0, time.Hour))
	if got := b.left([]string{old, late, damaged, halved, good, newest}); got != "011111" {
		t.Errorf("left are %s", got)
	}
	b.mustRun(agent.CommandPrune, b.pruneRequest(1, time.Minute))
	if got := b.left([]string{late, good}); got != "01" {
		t.Errorf("the newest good one is %s", got)
	}
}

// TestABackupListsOnceForWhatFollows: beside the look for what an earlier attempt has stored, one
// listing serves retention and AbortUploads.
func TestABackupListsOnceForWhatFollows(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	for i := range 20 {
		b.keep(owner, "mine", time.Now().Add(-time.Duration(20-i)*time.Hour), int64(i))
	}
	store := &counting{Store: b.store}
	b.store = store
	request := b.saveRequest("id-1", manifest.LayoutDirectory)
	request.Prune = &agent.Prune{Layout: manifest.LayoutDirectory, Owner: owner, BackupUID: "mine", Count: 20}
	request.AbortUploads = &agent.AbortUploads{Layout: manifest.LayoutDirectory, Owner: owner}
	result := b.mustRun(agent.CommandSave, request)
	if result.Pruned != 1 || result.Warning != "" {
		t.Errorf("the result says %+v", result)
	}
	// What is read is the stored snapshot, to verify it, and the manifest of what is deleted.
	if store.lists.Load() != 2 || store.gets.Load() != 2 {
		t.Errorf("%d lists and %d reads, want 2 and 2", store.lists.Load(), store.gets.Load())
	}
}

// TestPruneKeepsWhatIsNamed: a restore reads a backup, and names it by its snapshot, its manifest or its directory.
func TestPruneKeepsWhatIsNamed(t *testing.T) {
	for _, name := range []func(manifestKey string) string{
		func(key string) string { return key },
		func(key string) string { return filepath.Dir(key) },
		func(key string) string { return filepath.Join(filepath.Dir(key), "snapshot.db") },
	} {
		b := newBench(t, nil)
		now := time.Now().UTC().Truncate(time.Second)
		var keys []string
		for day := range 4 {
			keys = append(keys, b.keep(owner, "mine", now.Add(time.Duration(day-4)*24*time.Hour), int64(day)))
		}
		request := b.pruneRequest(1, 0)
		request.Prune.Keep = []string{"s3://elsewhere/" + keys[0], request.Store.URI(name(keys[1]))}
		b.mustRun(agent.CommandPrune, request)
		if left := b.left(keys); left != "0101" {
			t.Errorf("%s: left is %s", request.Prune.Keep[1], left)
		}
	}
}

// TestPruneOfAnEarlierClusterThatIsDamaged: what cannot be read proves nothing and is no last copy. The newest one that
// can be read tells whose the others are, and stays.
func TestPruneOfAnEarlierClusterThatIsDamaged(t *testing.T) {
	b := newBench(t, nil)
	now := time.Now().UTC().Truncate(time.Second)
	earlier := manifest.Owner{Namespace: owner.Namespace, Name: owner.Name, UID: "earlier"}
	var keys []string
	for i := range 6 {
		of := owner
		if i < 4 {
			of = earlier
		}
		keys = append(keys, b.keep(of, "mine", now.Add(-time.Duration(7-i)*time.Hour), int64(i)))
	}
	if err := objectstore.PutBytes(t.Context(), b.store, keys[3], []byte("{"), objectstore.PutOptions{Overwrite: true}); err != nil {
		t.Fatal(err)
	}
	b.mustRun(agent.CommandPrune, b.pruneRequest(1, 0))
	if got := b.left(keys); got != "001101" {
		t.Errorf("left are %s", got)
	}
}

// TestPruneOfALateAttempt: an attempt on a node that was lost ends weeks later. What was made since then is newer,
// whatever the clock of the volume's node has shown.
func TestPruneOfALateAttempt(t *testing.T) {
	b := newBench(t, nil)
	now := time.Now().UTC().Truncate(time.Second)
	newer, late := b.keep(owner, "mine", now.Add(-24*time.Hour), 2), b.keep(owner, "mine", now.Add(-20*24*time.Hour), 1)
	behind := now.Add(-365 * 24 * time.Hour)
	if err := os.Chtimes(filepath.Join(b.dir, newer), behind, behind); err != nil {
		t.Fatal(err)
	}
	raw, err := objectstore.ReadAll(t.Context(), b.store, late, manifest.MaxSize)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	run := &run{Runner: b.runner, request: b.pruneRequest(1, 30*24*time.Hour), result: &agent.Result{}, store: b.store}
	run.conclude(t.Context(), &manifest.Stored{Key: late, Manifest: m})
	if got := b.left([]string{newer, late}); got != "11" || run.result.Warning != "" {
		t.Errorf("left are %s, warning %q", got, run.result.Warning)
	}
}
