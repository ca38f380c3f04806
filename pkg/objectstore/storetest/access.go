// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

func (s *suite) denied(t *testing.T) {
	if s.Denied == nil {
		t.Skip("the server under test checks no credentials")
	}
	ctx, store := s.context(t), s.Denied(t)
	_, err := store.Stat(ctx, "k")
	mustBe(t, "Stat", err, objectstore.ErrDenied)
	_, err = store.Get(ctx, "k", 0, -1)
	mustBe(t, "Get", err, objectstore.ErrDenied)
	err = objectstore.PutBytes(ctx, store, "k", []byte("x"), objectstore.PutOptions{})
	mustBe(t, "Put", err, objectstore.ErrDenied)
	mustBe(t, "Delete", store.Delete(ctx, "k"), objectstore.ErrDenied)
	seen := false
	for _, err := range store.List(ctx, "") {
		mustBe(t, "List", err, objectstore.ErrDenied)
		seen = true
	}
	if !seen {
		t.Error("List succeeded")
	}
}

func (s *suite) missing(t *testing.T) {
	if s.Missing == nil {
		t.Skip("the store cannot be opened without its bucket")
	}
	ctx, store := s.context(t), s.Missing(t)
	seen := false
	for _, err := range store.List(ctx, "p") {
		mustBe(t, "List", err, objectstore.ErrNoBucket)
		seen = true
	}
	if !seen {
		t.Error("List succeeded")
	}
	for _, size := range []int{1, large} {
		_, err := store.Put(ctx, "k", unsized{bytes.NewReader(random(t, size))}, objectstore.PutOptions{Overwrite: true})
		mustBe(t, "Put", err, objectstore.ErrNoBucket)
	}
}
