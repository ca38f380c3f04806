// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"unsafe"

	"golang.org/x/sys/unix"

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

// TestReadBackReadsTheDisk: nothing of an object stays in memory when it is stored, so that
// the next read comes from the disk.
func TestReadBackReadsTheDisk(t *testing.T) {
	dir := t.TempDir()
	var system unix.Statfs_t
	if err := unix.Statfs(dir, &system); err != nil {
		t.Fatal(err)
	}
	if system.Type == unix.TMPFS_MAGIC {
		t.Skip("this directory is in memory and nowhere else")
	}
	const size = 8 << 20
	if _, err := open(t, dir).Put(t.Context(), "k", bytes.NewReader(make([]byte, size)), objectstore.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	if cached := cachedPages(t, filepath.Join(dir, "k"), size); cached > 0 {
		t.Errorf("%d pages are in memory", cached)
	}
	if _, err := os.ReadFile(filepath.Join(dir, "k")); err != nil {
		t.Fatal(err)
	}
	if cachedPages(t, filepath.Join(dir, "k"), size) == 0 {
		t.Error("no page is in memory after the file was read: nothing was tested")
	}
}

// cachedPages is how many pages of a file the kernel has in memory.
func cachedPages(t *testing.T, name string, size int) int {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	pages, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(pages) }()
	resident := make([]byte, (size+os.Getpagesize()-1)/os.Getpagesize())
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&pages[0])), uintptr(size), uintptr(unsafe.Pointer(&resident[0])))
	if errno != 0 {
		t.Fatal(errno)
	}
	cached := 0
	for _, page := range resident {
		cached += int(page & 1)
	}
	return cached
}

// TestSyncsAsItWrites: a large file needs no sync that takes as long as its transfer, and an error of one ends the transfer.
func TestSyncsAsItWrites(t *testing.T) {
	syncs, failure := 0, error(nil)
	w := &syncingWriter{w: io.Discard, sync: func() error { syncs++; return failure }}
	write := func() error {
		_, err := io.CopyBuffer(w, io.LimitReader(zeros{}, 2*syncEvery+copyBuffer), make([]byte, copyBuffer))
		return err
	}
	if err := write(); err != nil || syncs != 2 {
		t.Errorf("%d syncs, %v", syncs, err)
	}
	failure = unix.EIO
	if err := write(); !errors.Is(err, unix.EIO) || syncs != 3 {
		t.Errorf("%d syncs, %v", syncs, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// unreadable is a volume with a directory that this process may not read.
type unreadable struct {
	fstest.MapFS

	dir string
}

func (u unreadable) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == u.dir {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return u.MapFS.ReadDir(name)
}

// TestDirectoryThatCannotBeRead hides nothing, unless it cannot hold a backup.
func TestDirectoryThatCannotBeRead(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"etcd/a": {}, "lost+found/b": {}, "other/c": {}, "etcd/lost+found/d": {}}
	for name, test := range map[string]struct {
		dir, prefix, want string
		denied            bool
	}{
		"that of the file system": {"lost+found", "", "etcd/a etcd/lost+found/d other/c", false},
		"one of that name":        {"etcd/lost+found", "", "", true},
		"one that may hold it":    {"other", "", "", true},
		"one that holds it":       {"etcd", "etcd/", "", true},
		"one beside it":           {"other", "etcd/", "etcd/a etcd/lost+found/d", false},
	} {
		objects, err := walk(t.Context(), unreadable{files, test.dir}, test.prefix)
		if errors.Is(err, fs.ErrPermission) != test.denied || !test.denied && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var keys []string
		for _, o := range objects {
			keys = append(keys, o.Key)
		}
		if got := strings.Join(keys, " "); !test.denied && got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
