// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

// fault is what goes wrong in a shelf.
type fault string

const (
	faultNone fault = ""
	// faultPutLost: what is put is not there, and the request fails.
	faultPutLost fault = "put lost"
	// faultResponseLost: what is put is there, and the request fails all the same.
	faultResponseLost fault = "response of put lost"
	// faultListLate: a list does not show what was put since the last good one.
	faultListLate fault = "list late"
	// faultDeleteRejected: nothing can be deleted.
	faultDeleteRejected fault = "delete rejected"
	// faultGetRots: each read returns other bytes.
	faultGetRots fault = "get rots"
)

var errShelf = errors.New("the store is broken")

// shelf is a store in memory. A fault lasts as long as the walk wants, so what happens does not depend on the order of
// requests that are sent at once.
type shelf struct {
	objectstore.Store // what is missing below is not called

	mu      sync.Mutex
	now     func() time.Time // dates what is put
	fault   fault
	objects map[string]*onShelf
	// deleting is called for each object before it is deleted.
	deleting func(key string)
}

type onShelf struct {
	objectstore.Object

	content []byte
	rotten  bool // for ever
	late    bool
}

func (s *shelf) Put(_ context.Context, key string, r io.Reader, options objectstore.PutOptions) (objectstore.Written, error) {
	content, err := io.ReadAll(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		return objectstore.Written{}, err
	case s.fault == faultPutLost:
		return objectstore.Written{}, &objectstore.Error{Op: "put", Key: key, Cause: errShelf}
	case !options.Overwrite && s.objects[key] != nil:
		return objectstore.Written{}, &objectstore.Error{Op: "put", Key: key, Kind: objectstore.ErrExists}
	}
	s.objects[key] = &onShelf{Object: objectstore.Object{Key: key, Size: int64(len(content)), Modified: s.now()}, content: content, late: true}
	if s.fault == faultResponseLost {
		return objectstore.Written{}, &objectstore.Error{Op: "put", Key: key, Cause: errShelf}
	}
	return objectstore.Written{Size: int64(len(content))}, nil
}

func (s *shelf) Get(_ context.Context, key string, _, _ int64) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[key]
	switch {
	case o == nil:
		return nil, &objectstore.Error{Op: "get", Key: key, Kind: objectstore.ErrNotFound}
	case o.rotten || s.fault == faultGetRots:
		return io.NopCloser(strings.NewReader("rotten")), nil
	}
	return io.NopCloser(bytes.NewReader(o.content)), nil
}

func (s *shelf) Stat(_ context.Context, key string) (objectstore.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[key]; o != nil {
		return o.Object, nil
	}
	return objectstore.Object{}, &objectstore.Error{Op: "stat", Key: key, Kind: objectstore.ErrNotFound}
}

func (s *shelf) List(_ context.Context, prefix string) iter.Seq2[objectstore.Object, error] {
	return func(yield func(objectstore.Object, error) bool) {
		for _, key := range s.keys() {
			s.mu.Lock()
			o := s.objects[key]
			hidden := o.late && s.fault == faultListLate
			o.late = hidden
			s.mu.Unlock()
			if strings.HasPrefix(key, prefix) && !hidden && !yield(o.Object, nil) {
				return
			}
		}
	}
}

func (s *shelf) Delete(_ context.Context, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault == faultDeleteRejected {
		return &objectstore.Error{Op: "delete", Key: key, Kind: objectstore.ErrDenied}
	}
	if s.objects[key] != nil {
		s.deleting(key)
		delete(s.objects, key)
	}
	return nil
}

// AbortUploads implements objectstore.Store: a put leaves nothing that is not visible.
func (s *shelf) AbortUploads(context.Context, string, func(string) bool, time.Time) (int, error) {
	return 0, nil
}

func (s *shelf) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}
