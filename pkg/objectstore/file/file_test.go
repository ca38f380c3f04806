// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := New(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestAcceptance(t *testing.T) {
	dir := t.TempDir()
	storetest.Run(t, storetest.Options{
		Open:      func(t *testing.T) objectstore.Store { return open(t, dir) },
		Leftovers: true,
	})
}

func TestMissingDirectory(t *testing.T) {
	if _, err := New(filepath.Join(t.TempDir(), "none")); !errors.Is(err, objectstore.ErrNoBucket) {
		t.Errorf("got %v, want ErrNoBucket", err)
	}
}

func TestKeysStayBelowTheRoot(t *testing.T) {
	outside := t.TempDir()
	dir := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	for _, key := range []string{"", ".", "..", "../x", "/x", "a/../../x", "a//b", "link/x", temporaryDir + "/x", temporaryDir} {
		if err := objectstore.PutBytes(t.Context(), s, key, []byte("x"), objectstore.PutOptions{}); err == nil {
			t.Errorf("Put %q succeeded", key)
		}
		if _, err := s.Get(t.Context(), key, 0, -1); err == nil {
			t.Errorf("Get %q succeeded", key)
		}
		if err := s.Delete(t.Context(), key); err == nil && key != "link/x" {
			t.Errorf("Delete %q succeeded", key)
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside: %v, %v", entries, err)
	}
}

func TestDeleteRemovesEmptyDirectories(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for _, key := range []string{"a/b/one", "a/two"} {
		if err := objectstore.PutBytes(t.Context(), s, key, []byte("x"), objectstore.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Delete(t.Context(), "a/b/one"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a", "b")); !os.IsNotExist(err) {
		t.Errorf("a/b is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a", "two")); err != nil {
		t.Error(err)
	}
}
