// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/file"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

var owner = manifest.Owner{Namespace: "ns", Name: "c", UID: "u"}

// bench is a cluster, a store in a directory, and a runner.
type bench struct {
	t       *testing.T
	cluster *etcdtest.Cluster
	dir     string
	store   objectstore.Store
	runner  *Runner
}

func newBench(t *testing.T, cluster *etcdtest.Cluster) *bench {
	t.Helper()
	dir := t.TempDir()
	store, err := file.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	pool := etcd.NewPool(etcd.PoolConfig{})
	t.Cleanup(pool.Close)
	b := &bench{t: t, cluster: cluster, dir: dir, store: store}
	b.runner = &Runner{Pool: pool, Clock: clock.RealClock{}, Version: "test", Progress: &Progress{}}
	b.runner.Open = func(context.Context, *agent.Store, time.Duration) (objectstore.Store, error) { return b.store, nil }
	return b
}

func (b *bench) storePlace(key string) *agent.Store {
	return &agent.Store{Type: v1beta2.BackupStorageTypePersistentVolumeClaim, Bucket: "claim", Key: key, VolumeDir: b.dir}
}

func (b *bench) saveRequest(id string, layout manifest.Layout) *agent.Request {
	r := &agent.Request{
		ID: id, Etcd: &agent.Etcd{}, Store: b.storePlace("backups/etcd"),
		Save: &agent.Save{Layout: layout, Owner: owner, Started: time.Now()},
	}
	for _, e := range b.cluster.Target().Endpoints {
		r.Etcd.Endpoints = append(r.Etcd.Endpoints, agent.Endpoint{Name: e.Name, URL: e.URL})
	}
	return r
}

func (b *bench) run(command agent.Command, r *agent.Request) *agent.Result {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Minute) // only what hangs takes as long
	defer cancel()
	return b.runner.Run(ctx, command, r)
}

func (b *bench) mustRun(command agent.Command, r *agent.Request) *agent.Result {
	b.t.Helper()
	result := b.run(command, r)
	if result.Error != nil {
		b.t.Fatalf("%s: %v", command, result.Error)
	}
	return result
}

func (b *bench) mustFail(command agent.Command, r *agent.Request, class agent.ErrorClass) {
	b.t.Helper()
	if result := b.run(command, r); result.Error == nil || result.Error.Class != class {
		b.t.Errorf("%s: got %v, want %s", command, result.Error, class)
	}
}

func (b *bench) objects() []string {
	b.t.Helper()
	var keys []string
	for o, err := range b.store.List(b.t.Context(), "") {
		if err != nil {
			b.t.Fatal(err)
		}
		keys = append(keys, o.Key)
	}
	return keys
}

func (b *bench) fetch(key string, change func(*agent.Request)) (*agent.Result, string) {
	b.t.Helper()
	name := filepath.Join(b.t.TempDir(), "snapshot.db")
	r := &agent.Request{ID: "fetch", Store: b.storePlace("backups/etcd"), Fetch: &agent.Fetch{File: name}}
	r.Fetch.Key = key
	if change != nil {
		change(r)
	}
	return b.run(agent.CommandFetch, r), name
}

func mustHaveSum(t *testing.T, name, sum string) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	got := sha256.Sum256(raw)
	if hex.EncodeToString(got[:]) != sum {
		t.Errorf("%s has another content", name)
	}
}

func ageSecrets(t *testing.T) (recipientsDir, identitiesDir string) {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return storetest.Secret(t, map[string]string{recipientsFile: "# who\n" + identity.Recipient().String() + "\n"}),
		storetest.Secret(t, map[string]string{identitiesFile: identity.String() + "\n"})
}

func TestSaveAndFetch(t *testing.T) {
	cluster := etcdtest.New(t)
	cluster.Member("m0").Put(500)
	recipientsDir, identitiesDir := ageSecrets(t)
	for _, layout := range []manifest.Layout{manifest.LayoutDirectory, manifest.LayoutObject, manifest.LayoutSeries} {
		for _, compression := range []v1beta2.Compression{v1beta2.CompressionNone, v1beta2.CompressionZstd} {
			for _, encrypted := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/%v", layout, compression, encrypted), func(t *testing.T) {
					b := newBench(t, cluster)
					request := b.saveRequest("id-1", layout)
					request.Save.Compression = compression
					if encrypted {
						request.Save.RecipientsDir = recipientsDir
					}
					saved := b.mustRun(agent.CommandSave, request)
					if saved.Revision < 501 || !saved.Verified || saved.Encrypted != encrypted || saved.EtcdVersion == "" || saved.Member != "m0" ||
						saved.Size == 0 || saved.StoredSize == 0 || saved.AlreadyDone || saved.Bytes == 0 {
						t.Errorf("result %+v", saved)
					}
					if got := b.objects(); len(got) != 2 {
						t.Fatalf("objects %v", got)
					}
					b.checkSaved(saved, identitiesDir, encrypted)

					again := b.mustRun(agent.CommandSave, request)
					if !again.AlreadyDone || again.URI != saved.URI || again.SHA256 != saved.SHA256 || len(b.objects()) != 2 {
						t.Errorf("another attempt of the same transfer: %+v", again)
					}
				})
			}
		}
	}
}

// checkSaved verifies and fetches a backup under every name that it has.
func (b *bench) checkSaved(saved *agent.Result, identitiesDir string, encrypted bool) {
	t := b.t
	t.Helper()
	store := b.storePlace("backups/etcd")
	key, err := store.KeyOf(saved.URI)
	if err != nil {
		t.Fatal(err)
	}
	if !encrypted {
		identitiesDir = ""
	}
	for _, name := range []string{"", key} {
		result, fetched := b.fetch(name, func(r *agent.Request) { r.Fetch.IdentitiesDir = identitiesDir })
		if result.Error != nil {
			t.Fatalf("fetch %q: %v", name, result.Error)
		}
		mustHaveSum(t, fetched, saved.SHA256)
		if result.Revision != saved.Revision || result.URI != saved.URI {
			t.Errorf("fetched %+v", result)
		}
	}
	verify := &agent.Request{ID: "v", Store: store, Verify: &agent.Verify{Expected: agent.Expected{Key: key, SHA256: saved.SHA256}}}
	if result := b.mustRun(agent.CommandVerify, verify); !result.Verified || result.Revision != saved.Revision {
		t.Errorf("verified %+v", result)
	}
	if encrypted {
		result, _ := b.fetch(key, nil)
		if result.Error == nil || result.Error.Class != agent.ClassCredentials {
			t.Errorf("fetch without an identity: %v", result.Error)
		}
		_, other := ageSecrets(t)
		result, _ = b.fetch(key, func(r *agent.Request) { r.Fetch.IdentitiesDir = other })
		if result.Error == nil || result.Error.Class != agent.ClassCredentials {
			t.Errorf("fetch with another identity: %v", result.Error)
		}
	}
}

// A snapshot that an older program has stored has no manifest.
func TestFetchWithoutManifest(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	b.cluster.Member("m0").Put(100)
	saved := b.mustRun(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutObject))
	if err := b.store.Delete(t.Context(), "backups/etcd.manifest.json"); err != nil {
		t.Fatal(err)
	}
	result, name := b.fetch("backups/etcd", nil)
	if result.Error != nil {
		t.Fatal(result.Error)
	}
	mustHaveSum(t, name, saved.SHA256)

	// What a manifest would say it says itself.
	look := &agent.Request{ID: "look", Store: b.storePlace("backups/etcd"), Verify: &agent.Verify{}}
	looked := b.mustRun(agent.CommandVerify, look)
	if looked.Revision != saved.Revision || looked.StorageVersion != saved.StorageVersion || looked.SHA256 != saved.SHA256 || !looked.Verified {
		t.Errorf("verified %+v, saved %+v", looked, saved)
	}
	look.Verify.TargetVersion = "3.4.0"
	b.mustFail(agent.CommandVerify, look, agent.ClassUnsupported)
	look.Verify.TargetVersion, look.Verify.SHA256 = "", strings.Repeat("0", 64)
	b.mustFail(agent.CommandVerify, look, agent.ClassCorrupt)

	full := filepath.Join(b.dir, "backups/etcd")
	raw, err := os.ReadFile(full)
	if err != nil {
		t.Fatal(err)
	}
	for what, broken := range map[string][]byte{
		"cut":          raw[:len(raw)-100],
		"cut by pages": append(bytes.Clone(raw[:len(raw)-32-4096]), raw[len(raw)-32:]...),
		"flipped":      flipped(raw, len(raw)/2),
		"no trailer":   raw[:len(raw)-32],
		"no snapshot":  []byte("<html>not found</html>"),
		"empty":        {},
	} {
		if err := os.WriteFile(full, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		result, name := b.fetch("backups/etcd", nil)
		if result.Error == nil || result.Error.Class != agent.ClassCorrupt {
			t.Errorf("%s: got %v, want Corrupt", what, result.Error)
		}
		if left, _ := filepath.Glob(name + "*"); len(left) > 0 {
			t.Errorf("%s: left behind %v", what, left)
		}
	}
}

func flipped(raw []byte, at int) []byte {
	raw = bytes.Clone(raw)
	raw[at] ^= 0x10
	return raw
}

// Whatever happens to the stored object, it is not taken permanently.
func TestCorruptObject(t *testing.T) {
	recipientsDir, identitiesDir := ageSecrets(t)
	cluster := etcdtest.New(t)
	for _, kind := range []string{"plain", "zstd", "age"} {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t, cluster)
			request := b.saveRequest("id-1", manifest.LayoutDirectory)
			if kind != "plain" {
				request.Save.Compression = v1beta2.CompressionZstd
			}
			if kind == "age" {
				request.Save.RecipientsDir = recipientsDir
			}
			saved := b.mustRun(agent.CommandSave, request)
			full := filepath.Join(b.dir, saved.Key)
			raw, err := os.ReadFile(full)
			if err != nil {
				t.Fatal(err)
			}
			broken := map[string][]byte{"cut": raw[:len(raw)-1], "longer": append(bytes.Clone(raw), 0), "empty": {}}
			for i := range 8 {
				at := i * (len(raw) - 1) / 7
				broken[fmt.Sprintf("flipped at %d", at)] = flipped(raw, at)
			}
			for at := 0; at < 200 && kind == "age"; at += 7 {
				// The header, where damage looks like another recipient.
				broken[fmt.Sprintf("flipped at %d", at)] = flipped(raw, at)
			}
			for what, content := range broken {
				if err := os.WriteFile(full, content, 0o600); err != nil {
					t.Fatal(err)
				}
				result, _ := b.fetch(saved.Key, func(r *agent.Request) {
					if kind == "age" {
						r.Fetch.IdentitiesDir = identitiesDir
					}
				})
				if result.Error == nil || result.Error.Class != agent.ClassCorrupt {
					t.Errorf("fetch, %s: got %v, want Corrupt", what, result.Error)
				}
				b.mustFail(agent.CommandVerify, &agent.Request{ID: "v", Store: b.storePlace("backups/etcd"), Verify: &agent.Verify{}}, agent.ClassCorrupt)
			}
		})
	}
}

// breaking is a store that fails, or lies, in one call.
type breaking struct {
	objectstore.Store

	put func(ctx context.Context, key string, r io.Reader) error
	get func(key string) error
}

func (s *breaking) Put(ctx context.Context, key string, r io.Reader, o objectstore.PutOptions) (objectstore.Written, error) {
	if s.put != nil {
		if err := s.put(ctx, key, r); err != nil {
			return objectstore.Written{}, err
		}
	}
	return s.Store.Put(ctx, key, r, o)
}

func (s *breaking) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if s.get != nil {
		if err := s.get(key); err != nil {
			return nil, err
		}
	}
	return s.Store.Get(ctx, key, offset, length)
}

// An attempt that is killed after any step leaves nothing that looks like a backup, and
// the next one makes it.
func TestKilledAtEveryStep(t *testing.T) {
	cluster := etcdtest.New(t)
	for _, layout := range []manifest.Layout{manifest.LayoutDirectory, manifest.LayoutSeries, manifest.LayoutObject} {
		for name, fault := range map[string]func(*breaking, func()){
			"before the snapshot": func(s *breaking, kill func()) {
				s.put = func(ctx context.Context, _ string, _ io.Reader) error { kill(); return context.Cause(ctx) }
			},
			"within the snapshot": func(s *breaking, kill func()) {
				s.put = func(ctx context.Context, _ string, r io.Reader) error {
					_, _ = io.ReadFull(r, make([]byte, 10_000))
					kill()
					return context.Cause(ctx)
				}
			},
			"while verifying": func(s *breaking, kill func()) {
				s.get = func(key string) error {
					if manifest.IsManifest(key) {
						return nil
					}
					kill()
					return context.Canceled
				}
			},
			"before the manifest": func(s *breaking, kill func()) {
				s.put = func(ctx context.Context, key string, _ io.Reader) error {
					if !manifest.IsManifest(key) {
						return nil
					}
					kill()
					return context.Cause(ctx)
				}
			},
			"before the response to the manifest": func(s *breaking, kill func()) {
				s.put = func(ctx context.Context, key string, r io.Reader) error {
					if !manifest.IsManifest(key) {
						return nil
					}
					_, err := s.Store.Put(ctx, key, r, objectstore.PutOptions{})
					kill()
					return errors.Join(err, context.Cause(ctx))
				}
			},
		} {
			t.Run(string(layout)+"/"+name, func(t *testing.T) {
				b := newBench(t, cluster)
				request := b.saveRequest("id-1", layout)
				whole := b.store
				ctx, kill := context.WithCancel(t.Context())
				defer kill()
				broken := &breaking{Store: whole}
				fault(broken, kill)
				b.store = broken
				if result := b.runner.Run(ctx, agent.CommandSave, request); result.Error == nil || result.Error.Class != agent.ClassCanceled {
					t.Fatalf("killed: %v", result.Error)
				}
				b.store = whole
				for _, key := range b.objects() {
					if manifest.IsManifest(key) {
						t.Errorf("%s is visible", key)
					}
				}
				saved := b.mustRun(agent.CommandSave, request)
				if saved.AlreadyDone {
					t.Error("the killed attempt counted as done")
				}
				b.checkSaved(saved, "", false)
			})
		}
	}
}

// A manifest that comes to a store after its snapshot was taken back, or whose snapshot is
// not the one that it describes, does not count as what an attempt has done.
func TestManifestAlone(t *testing.T) {
	cluster := etcdtest.New(t)
	for _, layout := range []manifest.Layout{manifest.LayoutDirectory, manifest.LayoutSeries, manifest.LayoutObject} {
		b := newBench(t, cluster)
		request := b.saveRequest("id-1", layout)
		for what, damage := range map[string]func(key string) error{
			"gone": func(key string) error { return b.store.Delete(t.Context(), key) },
			"cut":  func(key string) error { return os.Truncate(filepath.Join(b.dir, key), 512) },
		} {
			saved := b.mustRun(agent.CommandSave, request)
			if err := damage(saved.Key); err != nil {
				t.Fatal(err)
			}
			again := b.mustRun(agent.CommandSave, request)
			if again.AlreadyDone {
				t.Errorf("%s: the snapshot is %s, and it counts as done", layout, what)
			}
			b.checkSaved(again, "", false)
		}
		if result := b.mustRun(agent.CommandSave, request); !result.AlreadyDone {
			t.Errorf("%s: it is made again", layout)
		}
	}
}

// What a killed process leaves, which cannot clean up, does not hinder the next, and is
// aborted.
func TestLeftoverOfKilledProcess(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	request := b.saveRequest("id-1", manifest.LayoutDirectory)
	saved := b.mustRun(agent.CommandSave, request)
	manifestKey := manifest.LayoutDirectory.ManifestKey(saved.Key)
	if err := b.store.Delete(t.Context(), manifestKey); err != nil {
		t.Fatal(err)
	}
	next := b.mustRun(agent.CommandSave, request)
	if next.Key == saved.Key || len(b.objects()) != 3 {
		t.Fatalf("the leftover was overwritten: %v", b.objects())
	}
	abortUploads := &agent.Request{ID: "s", Store: request.Store, AbortUploads: &agent.AbortUploads{Layout: manifest.LayoutDirectory, Owner: owner}}
	if result := b.mustRun(agent.CommandAbortUploads, abortUploads); result.AbortedUploads != 0 {
		t.Errorf("aborted %d younger than a day", result.AbortedUploads)
	}
	old := time.Now().Add(-25 * time.Hour)
	for _, key := range b.objects() {
		if err := os.Chtimes(filepath.Join(b.dir, key), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if result := b.mustRun(agent.CommandAbortUploads, abortUploads); result.AbortedUploads != 1 || len(b.objects()) != 2 {
		t.Errorf("aborted %d, left %v", result.AbortedUploads, b.objects())
	}
	b.checkSaved(next, "", false)
}

func TestStoreThatLies(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	whole := b.store
	b.store = &breaking{Store: whole, put: func(_ context.Context, key string, _ io.Reader) error { return nil }, get: func(key string) error {
		if !manifest.IsManifest(key) { // a bit rots before it is read back
			full := filepath.Join(b.dir, key)
			raw, err := os.ReadFile(full)
			if err != nil {
				return err
			}
			return os.WriteFile(full, flipped(raw, 5000), 0o600)
		}
		return nil
	}}
	b.mustFail(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutDirectory), agent.ClassCorrupt)
	if got := b.objects(); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
}

func TestMemberDown(t *testing.T) {
	cluster := etcdtest.NewVoters(t, 3)
	leader := cluster.Leader()
	b := newBench(t, cluster)
	saved := b.mustRun(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutDirectory))
	if saved.Member == leader.Name {
		t.Errorf("the leader %s served although there are followers", leader.Name)
	}
	// One survivor, without a quorum.
	survivor := cluster.Member("m0")
	for _, name := range []string{"m1", "m2"} {
		cluster.Member(name).Kill()
	}
	saved = b.mustRun(agent.CommandSave, b.saveRequest("id-2", manifest.LayoutDirectory))
	if saved.Member != survivor.Name {
		t.Errorf("%s served", saved.Member)
	}
	survivor.Kill()
	b.mustFail(agent.CommandSave, b.saveRequest("id-3", manifest.LayoutDirectory), agent.ClassEtcd)
}

func TestPrune(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	var saved []*agent.Result
	for i := range 4 {
		request := b.saveRequest(fmt.Sprintf("id-%d", i), manifest.LayoutSeries)
		request.Save.Started = request.Save.Started.Add(time.Duration(i) * time.Second)
		saved = append(saved, b.mustRun(agent.CommandSave, request))
		b.cluster.Member("m0").Put(1)
	}
	// What is not ours stays, whatever it is called.
	for _, key := range []string{"backups/etcd_v999_2020-01-01-00:00:00", "backups/etcd_vault"} {
		if err := objectstore.PutBytes(t.Context(), b.store, key, []byte("x"), objectstore.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	prune := &agent.Request{ID: "p", Store: b.storePlace("backups/etcd"), Prune: &agent.Prune{Layout: manifest.LayoutSeries, Owner: owner, Count: 2}}
	if result := b.mustRun(agent.CommandPrune, prune); result.Pruned != 2 {
		t.Errorf("pruned %d, want 2", result.Pruned)
	}
	if got := b.objects(); len(got) != 6 {
		t.Errorf("left %v", got)
	}
	prune.Prune.Owner.UID = "another"
	if result := b.mustRun(agent.CommandPrune, prune); result.Pruned != 0 {
		t.Errorf("pruned %d of another owner", result.Pruned)
	}
	for _, s := range saved[2:] {
		if result, _ := b.fetch(s.Key, nil); result.Error != nil {
			t.Error(result.Error)
		}
	}
}

func TestTargetVersion(t *testing.T) {
	m := &manifest.Manifest{}
	for _, test := range []struct {
		storage, etcd, target string
		ok                    bool
	}{
		{"3.6.0", "3.6.16", "3.6.1", true},
		{"", "3.5.35", "3.5.35", true},
		{"", "3.5.35", "3.6.16", true},
		{"3.6.0", "3.6.16", "3.7.3", true},
		{"3.7.0", "3.7.3", "3.6.16", false},
		{"3.7.0", "3.7.3", "3.5.35", false},
		{"3.6.0", "3.7.3", "3.6.16", true}, // a downgrade that was under way
		{"", "3.5.35", "3.7.3", false},
		{"", "", "3.6.16", true},
		{"3.6.0", "3.6.16", "", true},
	} {
		m.StorageVersion, m.EtcdVersion = test.storage, test.etcd
		if err := checkVersion(versionOf(m), test.target); (err == nil) != test.ok || (err != nil && !errors.Is(err, errUnsupported)) {
			t.Errorf("%+v: got %v", test, err)
		}
	}
}

func TestFetchLimits(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	saved := b.mustRun(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutDirectory))
	for name, test := range map[string]struct {
		change func(*agent.Request)
		class  agent.ErrorClass
	}{
		"too large":    {func(r *agent.Request) { r.Fetch.MaxSize = 1000 }, agent.ClassUnsupported},
		"another":      {func(r *agent.Request) { r.Fetch.SHA256 = strings.Repeat("ab", 32) }, agent.ClassCorrupt},
		"not there":    {func(r *agent.Request) { r.Fetch.Key = "backups/none" }, agent.ClassNotFound},
		"nothing here": {func(r *agent.Request) { r.Store.Key, r.Fetch.Key = "elsewhere", "" }, agent.ClassNotFound},
		"old target":   {func(r *agent.Request) { r.Fetch.TargetVersion = "3.4.23" }, agent.ClassUnsupported},
	} {
		if result, _ := b.fetch(saved.Key, test.change); result.Error == nil || result.Error.Class != test.class {
			t.Errorf("%s: got %v, want %s", name, result.Error, test.class)
		}
	}
	if err := os.Remove(filepath.Join(b.dir, saved.Key)); err != nil {
		t.Fatal(err)
	}
	if result, _ := b.fetch(path.Dir(saved.Key), nil); result.Error == nil || result.Error.Class != agent.ClassCorrupt {
		t.Errorf("a manifest without its snapshot: %v", result.Error)
	}
}

func TestFetchLive(t *testing.T) {
	cluster := etcdtest.New(t)
	cluster.Member("m0").Put(10)
	b := newBench(t, cluster)
	name := filepath.Join(t.TempDir(), "s.db")
	result := b.mustRun(agent.CommandFetch, &agent.Request{ID: "f", Etcd: b.saveRequest("x", manifest.LayoutDirectory).Etcd, Fetch: &agent.Fetch{File: name}})
	mustHaveSum(t, name, result.SHA256)
	if result.Revision < 11 || !result.Verified {
		t.Errorf("%+v", result)
	}
}
