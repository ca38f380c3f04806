// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"io"
	"iter"
	"path/filepath"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// hanging is a volume on which a call never ends, whatever its context says.
type hanging struct {
	objectstore.Store

	at string
	// reached receives when the call has begun.
	reached chan<- struct{}
}

func (h *hanging) hang(at string) {
	if h.at == at {
		h.reached <- struct{}{}
		select {}
	}
}

func (h *hanging) Put(ctx context.Context, key string, r io.Reader, options objectstore.PutOptions) (objectstore.Written, error) {
	h.hang("put")
	written, err := h.Store.Put(ctx, key, r, options)
	h.hang("sync")
	return written, err
}

func (h *hanging) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	h.hang("get")
	body, err := h.Store.Get(ctx, key, offset, length)
	return &hangingFile{body, h}, err
}

type hangingFile struct {
	io.ReadCloser

	volume *hanging
}

func (h *hangingFile) Read(p []byte) (int, error) {
	h.volume.hang("read")
	return h.ReadCloser.Read(p)
}

func (h *hangingFile) Close() error {
	h.volume.hang("close")
	return h.ReadCloser.Close()
}

func (h *hanging) Stat(ctx context.Context, key string) (objectstore.Object, error) {
	h.hang("stat")
	return h.Store.Stat(ctx, key)
}

func (h *hanging) List(ctx context.Context, prefix string) iter.Seq2[objectstore.Object, error] {
	return func(yield func(objectstore.Object, error) bool) {
		h.hang("list")
		h.Store.List(ctx, prefix)(yield)
	}
}

func (h *hanging) Delete(ctx context.Context, key string) error {
	h.hang("delete")
	return h.Store.Delete(ctx, key)
}

func (h *hanging) AbortUploads(ctx context.Context, prefix string, ours func(string) bool, before time.Time) (int, error) {
	h.hang("abort")
	return h.Store.AbortUploads(ctx, prefix, ours, before)
}

// TestVolumeThatDoesNotRespond: no call to a volume keeps an attempt running without end, and the result says what hangs.
func TestVolumeThatDoesNotRespond(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.New(t)
	for _, at := range []string{"open", "put", "sync", "get", "read", "close", "stat", "list", "delete", "abort"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, cluster)
			now, reached := testingclock.NewFakeClock(time.Now()), make(chan struct{}, 1)
			b.runner.Timers = now
			h := &hanging{Store: b.store, at: at, reached: reached}
			b.runner.Open = func(context.Context, *agent.Store, time.Duration) (objectstore.Store, error) {
				h.hang("open")
				return h, nil
			}
			b.keep(owner, "", time.Now().Add(-time.Hour), 1)
			request := b.saveRequest("id-1", manifest.LayoutDirectory)
			request.Prune = &agent.Prune{Layout: manifest.LayoutDirectory, Owner: owner, Count: 1}
			request.AbortUploads = &agent.AbortUploads{Layout: manifest.LayoutDirectory, Owner: owner}
			request.StallTimeoutSeconds = 60
			done := make(chan *agent.Result)
			go func() { done <- b.runner.Run(t.Context(), agent.CommandSave, request) }()
			<-reached
			now.Step(59 * time.Second)
			select {
			case result := <-done:
				t.Fatalf("it ends early: %v", result.Error)
			case <-time.After(10 * time.Millisecond):
			}
			now.Step(2 * time.Second)
			result := <-done
			if result.Error == nil || result.Error.Class != agent.ClassStalled || !strings.Contains(result.Error.Message, "PVC "+request.Store.Bucket+" has not responded for 1m0s") {
				t.Errorf("result %+v", result.Error)
			}
			if result.Command != agent.CommandSave || result.ID != "id-1" || result.Started.IsZero() || result.Finished.IsZero() {
				t.Errorf("result %+v", result)
			}
		})
	}
}

// TestVolumeThatWaits: a volume that waits for its member, or for the program that reads it, responds.
func TestVolumeThatWaits(t *testing.T) {
	t.Parallel()
	b := newBench(t, etcdtest.New(t))
	now := testingclock.NewFakeClock(time.Now())
	v := &volume{Store: b.store, pvc: "pvc", stall: time.Minute, clock: now, hung: make(chan error, 1)}
	late := &stepping{Reader: strings.NewReader("x"), clock: now}
	if _, err := v.Put(t.Context(), filepath.Join("a", "b"), late, objectstore.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, err := range v.List(t.Context(), "") {
		if now.Step(time.Hour); err != nil {
			t.Error(err)
		}
	}
	body, err := v.Get(t.Context(), "a/b", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	now.Step(time.Hour)
	if raw, err := io.ReadAll(body); string(raw) != "x" || err != nil || body.Close() != nil {
		t.Errorf("read %q, %v", raw, err)
	}
	now.Step(time.Hour)
	if len(v.hung) > 0 || now.HasWaiters() {
		t.Errorf("%d calls hang, timers left: %t", len(v.hung), now.HasWaiters())
	}
}

// stepping is read slowly.
type stepping struct {
	io.Reader

	clock *testingclock.FakeClock
}

func (s *stepping) Read(p []byte) (int, error) {
	s.clock.Step(time.Hour)
	return s.Reader.Read(p)
}
