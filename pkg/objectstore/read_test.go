// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package objectstore_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

// cutter is a store with one object, whose connections break as often as breaks says; err is
// what a new connection gets, if it is not nil.
type cutter struct {
	objectstore.Store

	data         []byte
	breaks       int
	unresponsive bool
	err          error
	gets         int
	offsets      []int64
}

func (c *cutter) Get(_ context.Context, _ string, offset, _ int64) (io.ReadCloser, error) {
	c.gets++
	c.offsets = append(c.offsets, offset)
	if c.err != nil {
		return nil, c.err
	}
	rest := c.data[offset:]
	if c.gets > c.breaks {
		return io.NopCloser(bytes.NewReader(rest)), nil
	}
	part := bytes.NewReader(rest[:len(rest)/2])
	if c.unresponsive { // it ends as if that were all
		return io.NopCloser(part), nil
	}
	return io.NopCloser(io.MultiReader(part, broken{})), nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// TestResume: a download goes on where it was, also after a connection that ended early
// without an error, and ends at once with what no new connection heals.
func TestResume(t *testing.T) {
	t.Parallel()
	data := make([]byte, 4000)
	for i := range data {
		data[i] = byte(i * i >> 3)
	}
	for name, store := range map[string]*cutter{
		"whole": {data: data}, "broken": {data: data, breaks: 1}, "ended early": {data: data, breaks: 1, unresponsive: true},
	} {
		body := objectstore.Resume(t.Context(), store, objectstore.Object{Key: "k", Size: int64(len(data))})
		got, err := io.ReadAll(body)
		if err = errors.Join(err, body.Close()); err != nil || !bytes.Equal(got, data) || store.gets != store.breaks+1 {
			t.Errorf("%s: %d bytes in %d downloads from %v, %v", name, len(got), store.gets, store.offsets, err)
		}
	}
	for _, kind := range []error{objectstore.ErrNotFound, objectstore.ErrNoBucket, objectstore.ErrDenied, objectstore.ErrCredentials, objectstore.ErrStalled} {
		store := &cutter{err: &objectstore.Error{Op: "get", Key: "k", Kind: kind}}
		if _, err := io.ReadAll(objectstore.Resume(t.Context(), store, objectstore.Object{Key: "k", Size: 4})); !errors.Is(err, kind) || store.gets != 1 {
			t.Errorf("%v: %d downloads, %v", kind, store.gets, err)
		}
	}
}

func TestReadAll(t *testing.T) {
	t.Parallel()
	for limit, good := range map[int64]bool{3: false, 4: true, 5: true} {
		if raw, err := objectstore.ReadAll(t.Context(), &cutter{data: []byte("etcd")}, "k", limit); (err == nil) != good || good && string(raw) != "etcd" {
			t.Errorf("at most %d bytes: %q, %v", limit, raw, err)
		}
	}
}
