// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
)

// counting is a store that counts what it is given, and in how many buffers.
type counting struct {
	mu      sync.Mutex
	buffers map[*byte]int
	bytes   int64
	parts   int
}

func (c *counting) PutWhole(context.Context, []byte) error { return nil }
func (c *counting) Begin(context.Context) error            { return nil }
func (c *counting) Abort(context.Context) error            { return nil }

func (c *counting) PutPart(_ context.Context, _ int, data []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buffers[&data[0]] = cap(data)
	c.bytes += int64(len(data))
	return nil
}

func (c *counting) Complete(_ context.Context, count int) error {
	c.parts = count
	return nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestMemoryIsBounded: however large an object is, it goes through the same few buffers.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	for _, parts := range []int{3, 512} {
		size := int64(parts-1)*PartSize + 1
		store := &counting{buffers: map[*byte]int{}}
		n, err := Upload(t.Context(), io.LimitReader(zeros{}, size), store)
		if err != nil || n != size || store.bytes != size || store.parts != parts {
			t.Fatalf("sent %d of %d bytes in %d parts: %v", store.bytes, n, store.parts, err)
		}
		memory := 0
		for _, room := range store.buffers {
			memory += room
		}
		if want := (partsInFlight + 1) * PartSize; memory > want {
			t.Errorf("%d parts took %d bytes in %d buffers, at most %d", parts, memory, len(store.buffers), want)
		}
	}
}

// stubborn is a store that takes no part, and whose credentials may not abort an upload or delete an object.
type stubborn struct{ Store }

var errFull = errors.New("507")

func (stubborn) denied() error                              { return &Error{Op: "clean up", Kind: ErrDenied} }
func (stubborn) PutWhole(context.Context, []byte) error     { return nil }
func (stubborn) Begin(context.Context) error                { return nil }
func (stubborn) PutPart(context.Context, int, []byte) error { return errFull }
func (stubborn) Complete(context.Context, int) error        { return nil }
func (s stubborn) Abort(context.Context) error              { return s.denied() }
func (s stubborn) Delete(context.Context, string) error     { return s.denied() }

// TestCleanUpIsNotTheFailure: what cannot be cleaned up is in the text of a failure and does not change its kind.
func TestCleanUpIsNotTheFailure(t *testing.T) {
	t.Parallel()
	_, upload := Upload(t.Context(), io.LimitReader(zeros{}, 2*PartSize), stubborn{})
	for name, test := range map[string]struct{ err, want error }{
		"upload":  {upload, errFull},
		"damaged": {Withdraw(t.Context(), stubborn{}, "k", Damaged("k", ChecksumMD5, "a", "b")), ErrDamaged},
	} {
		if !errors.Is(test.err, test.want) || errors.Is(test.err, ErrDenied) || !strings.Contains(test.err.Error(), ErrDenied.Error()) {
			t.Errorf("%s: got %v", name, test.err)
		}
	}
}
