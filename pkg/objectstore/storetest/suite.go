// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

const (
	// patience bounds what a store may take for anything here, on a busy machine under the race detector.
	patience = 10 * time.Minute
	// many is more than a page of any store's listing.
	many = 1100
	// large is more than two parts, and no multiple of one.
	large = 2*objectstore.PartSize + 12345
	// Stall is the time-out for a store that stalls.
	Stall = 5 * time.Second
	// slowStall is that time-out for a store that is slow, on a busy machine.
	slowStall = 12 * time.Second
)

// Options say what is tested.
type Options struct {
	// Open opens the store with good credentials.
	Open func(t *testing.T) objectstore.Store
	// Through opens it through a proxy. Nil for a store that is not reached over a network.
	Through func(t *testing.T, proxy *Proxy) objectstore.Store
	// Denied opens it with wrong credentials, Missing with a bucket that is not
	// there. Nil if the server under test cannot tell.
	Denied  func(t *testing.T) objectstore.Store
	Missing func(t *testing.T) objectstore.Store
	// Leftovers are left by an upload that is killed, and can be aborted.
	Leftovers bool
	// Aborted says that a Put that fails, too, leaves what only AbortUploads deletes.
	Aborted bool
	// Proves says that the store returns checksums.
	Proves bool
	// Once says that a large object is sent once: a Put that was cut fails.
	Once bool
}

// Run checks a store.
func Run(t *testing.T, o Options) {
	s := &suite{Options: o}
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Roundtrip", s.roundtrip},
		{"Range", s.ranges},
		{"NotFound", s.notFound},
		{"Overwrite", s.overwrite},
		{"ConcurrentCreate", s.concurrentCreate},
		{"List", s.list},
		{"FailingSource", s.failingSource},
		{"FailingSourceKeepsOld", s.failingSourceKeepsOld},
		{"Cancel", s.cancel},
		{"AbortUploads", s.abortUploads},
		{"Denied", s.denied},
		{"MissingBucket", s.missing},
		{"ServerErrors", s.serverErrors},
		{"Stall", s.stall},
		{"SlowIsNoStall", s.slow},
		{"CutUpload", s.cutUpload},
		{"CutDownload", s.cutDownload},
		{"Proof", s.proof},
		{"NoProof", s.noProof},
		{"DamagedUpload", s.damagedUpload},
		{"WrongChecksum", s.wrongChecksum},
	} {
		t.Run(test.name, test.run)
	}
}

type suite struct{ Options }

func (s *suite) context(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// prefix returns keys that no other test uses.
func prefix(t *testing.T) string {
	return strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")) + "/" + rand.Text()[:8] + "/"
}

func random(t *testing.T, size int) []byte {
	t.Helper()
	data := make([]byte, size)
	if _, err := rand.Read(data); err != nil {
		t.Fatal(err)
	}
	return data
}

// unsized hides how long a source is.
type unsized struct{ io.Reader }

func put(ctx context.Context, t *testing.T, store objectstore.Store, key string, data []byte) {
	t.Helper()
	written, err := store.Put(ctx, key, unsized{bytes.NewReader(data)}, objectstore.PutOptions{})
	if err != nil || written.Size != int64(len(data)) {
		t.Fatalf("Put %s: %d bytes, %v; want %d", key, written.Size, err, len(data))
	}
}

func mustHave(ctx context.Context, t *testing.T, store objectstore.Store, key string, want []byte) {
	t.Helper()
	body, err := store.Get(ctx, key, 0, -1)
	if err != nil {
		t.Fatalf("Get %s: %v", key, err)
	}
	defer body.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, body)
	if err != nil || n != int64(len(want)) || [32]byte(sum.Sum(nil)) != sha256.Sum256(want) {
		t.Fatalf("Get %s: %d bytes of another content, %v; want %d", key, n, err, len(want))
	}
}

func keys(ctx context.Context, t *testing.T, store objectstore.Store, prefix string) []string {
	t.Helper()
	var found []string
	for object, err := range store.List(ctx, prefix) {
		if err != nil {
			t.Fatalf("List %s: %v", prefix, err)
		}
		found = append(found, object.Key)
	}
	return found
}

func mustBe(t *testing.T, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: got %v, want %v", what, err, kind)
	}
}

func (s *suite) roundtrip(t *testing.T) {
	ctx, store, at := s.context(t), s.Open(t), prefix(t)
	for name, size := range map[string]int{"one": 1, "small": 1000, "part": objectstore.PartSize, "large": large} {
		t.Run(name, func(t *testing.T) {
			data := random(t, size)
			key := at + name + " with+odd_characters_v1_2026-01-02-15:04:05"
			before := time.Now().Add(-time.Minute)
			put(ctx, t, store, key, data)
			object, err := store.Stat(ctx, key)
			if err != nil || object.Key != key || object.Size != int64(size) || object.Modified.Before(before) {
				t.Errorf("Stat: %+v, %v", object, err)
			}
			mustHave(ctx, t, store, key, data)
			if err := store.Delete(ctx, key); err != nil {
				t.Errorf("Delete: %v", err)
			}
			_, err = store.Stat(ctx, key)
			mustBe(t, "Stat of what was deleted", err, objectstore.ErrNotFound)
		})
	}
}

func (s *suite) ranges(t *testing.T) {
	ctx, store, key := s.context(t), s.Open(t), prefix(t)+"k"
	data := random(t, 10_000)
	put(ctx, t, store, key, data)
	for _, r := range []struct{ offset, length int64 }{{0, -1}, {0, 10}, {9_968, -1}, {9_968, 32}, {500, 1000}, {17, 0}} {
		body, err := store.Get(ctx, key, r.offset, r.length)
		if err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		got, err := io.ReadAll(body)
		body.Close()
		end := int64(len(data))
		if r.length >= 0 {
			end = r.offset + r.length
		}
		if err != nil || !bytes.Equal(got, data[r.offset:end]) {
			t.Errorf("%+v: %d bytes, %v", r, len(got), err)
		}
	}
}

func (s *suite) notFound(t *testing.T) {
	ctx, store, at := s.context(t), s.Open(t), prefix(t)
	_, err := store.Stat(ctx, at+"none")
	mustBe(t, "Stat", err, objectstore.ErrNotFound)
	_, err = store.Get(ctx, at+"none", 0, -1)
	mustBe(t, "Get", err, objectstore.ErrNotFound)
	if err := store.Delete(ctx, at+"none"); err != nil {
		t.Errorf("Delete: %v", err)
	}
	if found := keys(ctx, t, store, at); len(found) > 0 {
		t.Errorf("List: %v", found)
	}
}

func (s *suite) overwrite(t *testing.T) {
	ctx, store, key := s.context(t), s.Open(t), prefix(t)+"k"
	old := random(t, 1000)
	put(ctx, t, store, key, old)
	for name, size := range map[string]int{"small": 10, "large": large} {
		_, err := store.Put(ctx, key, unsized{bytes.NewReader(random(t, size))}, objectstore.PutOptions{})
		mustBe(t, name, err, objectstore.ErrExists)
		mustHave(ctx, t, store, key, old)
	}
	for _, size := range []int{10, large} {
		data := random(t, size)
		if _, err := store.Put(ctx, key, unsized{bytes.NewReader(data)}, objectstore.PutOptions{Overwrite: true}); err != nil {
			t.Fatalf("asked to overwrite: %v", err)
		}
		mustHave(ctx, t, store, key, data)
	}
}

// concurrentCreate lets several writers create the same object: one writer wins, and the
// object is what the winner wrote.
func (s *suite) concurrentCreate(t *testing.T) {
	ctx, store, key := s.context(t), s.Open(t), prefix(t)+"k"
	var mu sync.Mutex
	var won [][]byte
	var group errgroup.Group
	for range 4 {
		data := random(t, 10_000)
		group.Go(func() error {
			_, err := store.Put(ctx, key, unsized{bytes.NewReader(data)}, objectstore.PutOptions{})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, data)
			} else if !errors.Is(err, objectstore.ErrExists) {
				return err
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if len(won) != 1 {
		t.Fatalf("%d of 4 have created the same object", len(won))
	}
	mustHave(ctx, t, store, key, won[0])
}

func (s *suite) list(t *testing.T) {
	ctx, store, at := s.context(t), s.Open(t), prefix(t)
	want := make([]string, 0, many+2)
	for i := range many {
		want = append(want, fmt.Sprintf("%sd/%04d", at, i))
	}
	want = append(want, at+"d-sorts-before-a-slash", at+"d.too")
	var group errgroup.Group
	group.SetLimit(16)
	for _, key := range want {
		group.Go(func() error {
			return objectstore.PutBytes(ctx, store, key, []byte("x"), objectstore.PutOptions{Overwrite: true})
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	if got := keys(ctx, t, store, at); !slices.Equal(got, want) {
		t.Errorf("%d objects, want %d, in the order of their keys", len(got), len(want))
	}
	if got := keys(ctx, t, store, at+"d/05"); len(got) != 100 || got[0] != at+"d/0500" {
		t.Errorf("%d objects begin with d/05, want 100", len(got))
	}
	for object, err := range store.List(ctx, at) {
		if err != nil || object.Size != 1 || object.Modified.IsZero() {
			t.Errorf("%+v, %v", object, err)
		}
		break // an iteration may end early
	}
}
