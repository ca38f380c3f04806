// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

// through opens the store through a proxy of its own.
func (s *suite) through(t *testing.T) (objectstore.Store, *Proxy) {
	t.Helper()
	if s.Through == nil {
		t.Skip("this store is not reached over a network")
	}
	proxy := NewProxy(t)
	return s.Through(t, proxy), proxy
}

// impatient is as through, and the store has a time-out for stalls.
func (s *suite) impatient(t *testing.T, stall time.Duration) (objectstore.Store, *Proxy) {
	t.Helper()
	if s.Through == nil {
		t.Skip("this store is not reached over a network")
	}
	proxy := NewProxy(t)
	proxy.timeout = stall
	return s.Through(t, proxy), proxy
}

// serverErrors lets the store response with 503 now and then: every call succeeds, or the next
// one does where a large object is sent once.
func (s *suite) serverErrors(t *testing.T) {
	store, proxy := s.through(t)
	ctx, key := s.context(t), prefix(t)+"k"
	data := random(t, large)
	proxy.FailEvery(3)
	if s.Once {
		if _, err := store.Put(ctx, key, unsized{bytes.NewReader(data)}, objectstore.PutOptions{}); err == nil {
			t.Error("stored with a 503")
		}
		s.nothingLeft(ctx, t, store, key)
		proxy.FailEvery(0)
	}
	put(ctx, t, store, key, data)
	proxy.FailEvery(3)
	object, err := store.Stat(ctx, key)
	if err != nil {
		t.Fatalf("Stat: %v", err)
	}
	if got := keys(ctx, t, store, key); len(got) != 1 {
		t.Errorf("List: %v", got)
	}
	body := objectstore.Resume(ctx, store, object)
	defer body.Close()
	got, err := io.ReadAll(body)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("read %d of %d bytes, %v", len(got), len(data), err)
	}
	if err := store.Delete(ctx, key); err != nil {
		t.Errorf("Delete: %v", err)
	}
	if proxy.Failed() == 0 {
		t.Error("no request failed: nothing was tested")
	}
}

// stall lets the store take bytes and say nothing more.
func (s *suite) stall(t *testing.T) {
	store, proxy := s.impatient(t, Stall)
	ctx, at := s.context(t), prefix(t)
	data := random(t, large)
	put(ctx, t, s.Open(t), at+"old", data)

	proxy.StallAfter(1 << 20)
	_, err := store.Put(ctx, at+"k", unsized{bytes.NewReader(data)}, objectstore.PutOptions{Overwrite: true})
	mustBe(t, "Put", err, objectstore.ErrStalled)
	proxy.Heal()
	if found := keys(ctx, t, store, at+"k"); len(found) > 0 {
		t.Errorf("visible: %v", found)
	}

	object, err := store.Stat(ctx, at+"old")
	if err != nil {
		t.Fatalf("Stat: %v", err)
	}
	proxy.StallAfter(1 << 20)
	body := objectstore.Resume(ctx, store, object)
	defer body.Close()
	_, err = io.Copy(io.Discard, body)
	mustBe(t, "Get", err, objectstore.ErrStalled)
}

// slow makes a transfer take longer than the time-out for a stall.
func (s *suite) slow(t *testing.T) {
	store, proxy := s.impatient(t, slowStall)
	ctx, key := s.context(t), prefix(t)+"k"
	// Sixteen seconds in each direction. The kernel holds up to 4 MiB of an upload, which is
	// four seconds without visible progress.
	const size = objectstore.PartSize - 1
	data := random(t, size)
	proxy.Limit(size / 16)
	start := time.Now()
	put(ctx, t, store, key, data)
	mustHave(ctx, t, store, key, data)
	if took := time.Since(start); took < 2*slowStall {
		t.Errorf("it took only %s: nothing was tested", took)
	}
}

// cutUpload cuts the connection in the middle of an upload: it is taken up again, or fails
// and leaves nothing.
func (s *suite) cutUpload(t *testing.T) {
	store, proxy := s.through(t)
	ctx, key := s.context(t), prefix(t)+"k"
	data := random(t, large)
	proxy.CutOnceAfter(3 << 20)
	if s.Once {
		if _, err := store.Put(ctx, key, unsized{bytes.NewReader(data)}, objectstore.PutOptions{}); err == nil {
			t.Error("an upload that was cut looked whole")
		}
		s.nothingLeft(ctx, t, store, key)
	}
	put(ctx, t, store, key, data)
	mustHave(ctx, t, store, key, data)
	if !proxy.HasCut() {
		t.Error("nothing was cut: nothing was tested")
	}
	if n, err := store.AbortUploads(ctx, key, Any, time.Now().Add(time.Hour)); err != nil || n > 0 {
		t.Errorf("%d leftovers, %v", n, err)
	}
}

// cutDownload cuts the connection in the middle of a download.
func (s *suite) cutDownload(t *testing.T) {
	store, proxy := s.through(t)
	ctx, key := s.context(t), prefix(t)+"k"
	data := random(t, 8<<20)
	put(ctx, t, store, key, data)
	object, err := store.Stat(ctx, key)
	if err != nil {
		t.Fatalf("Stat: %v", err)
	}
	proxy.CutAfter(3 << 20)
	body, err := store.Get(ctx, key, 0, -1)
	if err == nil {
		_, err = io.Copy(io.Discard, body)
		body.Close()
	}
	if err == nil {
		t.Error("a download that was cut looked whole")
	}
	resumed := objectstore.Resume(ctx, store, object)
	defer resumed.Close()
	got, err := io.ReadAll(resumed)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("resumed: %d of %d bytes, %v", len(got), len(data), err)
	}
}
