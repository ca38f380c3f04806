// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

var errSource = errors.New("the source broke")

// failing gives n bytes and then fails.
func failing(n int64) io.Reader {
	return io.MultiReader(io.LimitReader(zeros{}, n), errorReader{errSource})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

func (s *suite) failingSource(t *testing.T) {
	ctx, store, at := s.context(t), s.Open(t), prefix(t)
	for name, size := range map[string]int64{"at-once": 0, "small": 1000, "part": objectstore.PartSize, "large": large} {
		_, err := store.Put(ctx, at+name, failing(size), objectstore.PutOptions{})
		mustBe(t, name, err, errSource)
	}
	s.nothingLeft(ctx, t, store, at)
}

// nothingLeft checks that there is neither an object nor an invisible leftover.
func (s *suite) nothingLeft(ctx context.Context, t *testing.T, store objectstore.Store, at string) {
	t.Helper()
	if found := keys(ctx, t, store, at); len(found) > 0 {
		t.Errorf("visible: %v", found)
	}
	n, err := store.AbortUploads(ctx, at, Any, time.Now().Add(time.Hour))
	if n > 0 && s.Aborted && err == nil {
		n, err = store.AbortUploads(ctx, at, Any, time.Now().Add(time.Hour))
	}
	if err != nil || n > 0 {
		t.Errorf("%d leftovers, %v", n, err)
	}
	if found := keys(ctx, t, store, at); len(found) > 0 {
		t.Errorf("visible after AbortUploads: %v", found)
	}
}

func (s *suite) failingSourceKeepsOld(t *testing.T) {
	ctx, store, key := s.context(t), s.Open(t), prefix(t)+"k"
	old := random(t, 1000)
	put(ctx, t, store, key, old)
	for _, size := range []int64{100, large} {
		_, err := store.Put(ctx, key, failing(size), objectstore.PutOptions{Overwrite: true})
		mustBe(t, "Put", err, errSource)
		mustHave(ctx, t, store, key, old)
	}
}

// canceling cancels after n bytes, and goes on giving.
type canceling struct {
	n      int64
	cancel func()
}

func (c *canceling) Read(p []byte) (int, error) {
	if c.n -= int64(len(p)); c.n < 0 {
		c.cancel()
	}
	return zeros{}.Read(p)
}

func (s *suite) cancel(t *testing.T) {
	store, at := s.Open(t), prefix(t)
	for name, size := range map[string]int64{"small": 1000, "large": large} {
		ctx, cancel := context.WithCancel(s.context(t))
		start := time.Now()
		_, err := store.Put(ctx, at+name, &canceling{n: size, cancel: cancel}, objectstore.PutOptions{})
		mustBe(t, name, err, context.Canceled)
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%s: it took %s to end", name, took)
		}
	}
	s.nothingLeft(s.context(t), t, store, at)
}

// Any is for AbortUploads where all that is in the store is of the test.
func Any(string) bool { return true }

// abortUploads leaves an upload behind as a killed process does: the store has parts, and
// no request follows.
func (s *suite) abortUploads(t *testing.T) {
	if !s.Leftovers {
		t.Skip("this store cleans up by itself")
	}
	ctx, store, at := s.context(t), s.Open(t), prefix(t)
	killed, gone := store, func() {}
	if s.Through != nil {
		proxy := NewProxy(t)
		killed, gone = s.Through(t, proxy), proxy.Reject
	}
	source := &blocking{n: large, blocked: make(chan struct{})}
	go func() {
		_, _ = killed.Put(ctx, at+"k", source, objectstore.PutOptions{})
	}()
	<-source.blocked
	gone()
	if s.Through != nil { // what is written to a volume has no key yet
		others := func(key string) bool { return key != at+"k" }
		if n, err := store.AbortUploads(ctx, at, others, time.Now().Add(time.Hour)); err != nil || n != 0 {
			t.Errorf("leftovers of another program: aborted %d, %v", n, err)
		}
	}
	if n, err := store.AbortUploads(ctx, at, Any, time.Now().Add(-time.Hour)); err != nil || n != 0 {
		t.Errorf("younger leftovers: aborted %d, %v", n, err)
	}
	if n, err := store.AbortUploads(ctx, at, Any, time.Now().Add(time.Hour)); err != nil || n != 1 {
		t.Errorf("aborted %d, %v; want 1", n, err)
	}
	s.nothingLeft(ctx, t, store, at)
}

// blocking gives n bytes, says so, and blocks permanently, as a process that no longer exists.
type blocking struct {
	n       int64
	blocked chan struct{}
	once    sync.Once
}

func (b *blocking) Read(p []byte) (int, error) {
	if b.n <= 0 {
		b.once.Do(func() { close(b.blocked) })
		select {}
	}
	b.n -= int64(len(p))
	return zeros{}.Read(p)
}
