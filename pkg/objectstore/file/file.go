// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

const (
	// temporaryDir holds what is being written. It is below the root, so that a
	// rename stays on the volume, and its name is no valid first part of a key.
	temporaryDir = ".etcd-operator-partial"
	// lostAndFound is where ext4 puts what its repair finds. It is made with the file system, and root alone may read it.
	lostAndFound = "lost+found"
	dirMode      = 0o750
	fileMode     = 0o640
	copyBuffer   = 1 << 20
	// syncEvery is how much is written between two syncs, in bytes. So no sync takes long however large the file is,
	// and a slow volume does not look like one that does not respond.
	syncEvery = 64 << 20
)

// Store is a directory. It implements objectstore.Store.
type Store struct {
	root *os.Root
}

var _ objectstore.Store = (*Store)(nil)

// New opens a directory, which must exist.
func New(dir string) (*Store, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, failed("open", dir, err, objectstore.ErrNoBucket)
	}
	return &Store{root: root}, nil
}

// Close releases the directory.
func (s *Store) Close() error { return s.root.Close() }

// Put implements objectstore.Store.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, options objectstore.PutOptions) (objectstore.Written, error) {
	const op = "put"
	if err := checkKey(op, key); err != nil {
		return objectstore.Written{}, err
	}
	if info, err := s.root.Lstat(key); err == nil {
		if info.IsDir() {
			return objectstore.Written{}, &objectstore.Error{Op: op, Key: key, Kind: objectstore.ErrExists, Cause: errors.New("a directory of the volume has this name; choose another path")}
		}
		if !options.Overwrite {
			return objectstore.Written{}, &objectstore.Error{Op: op, Key: key, Kind: objectstore.ErrExists}
		}
	}
	if err := s.root.MkdirAll(temporaryDir, dirMode); err != nil {
		return objectstore.Written{}, failed(op, key, err, nil)
	}
	temporary := path.Join(temporaryDir, rand.Text())
	n, err := s.write(ctx, temporary, r)
	if err == nil {
		err = s.publish(temporary, key, options.Overwrite)
	}
	if err != nil {
		if removeErr := s.root.Remove(temporary); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
			err = objectstore.WithCleanUp(err, removeErr)
		}
		if errors.Is(err, errFileInPath) {
			err = &objectstore.Error{Op: op, Key: key, Kind: objectstore.ErrExists, Cause: err}
			return objectstore.Written{Size: n}, err
		}
		return objectstore.Written{Size: n}, failed(op, key, err, nil)
	}
	return objectstore.Written{Size: n}, nil
}

// write writes a whole temporary file and syncs it. What the kernel keeps of it in memory is
// dropped then, so that the next read comes from the disk.
func (s *Store) write(ctx context.Context, name string, r io.Reader) (int64, error) {
	file, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return 0, err
	}
	n, err := io.CopyBuffer(&syncingWriter{w: file, sync: file.Sync}, &contextReader{ctx: ctx, r: r}, make([]byte, copyBuffer))
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = uncache(file)
	}
	return n, errors.Join(err, file.Close())
}

// uncache drops what the kernel keeps of a file that was synced. A file system that does not
// know that keeps it.
func uncache(file *os.File) error {
	err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED)
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}

// syncingWriter syncs a file as it is written. It has no ReadFrom, so that the buffer is used.
type syncingWriter struct {
	w        io.Writer
	sync     func() error
	unsynced int
}

// Write implements io.Writer.
func (s *syncingWriter) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if s.unsynced += n; err == nil && s.unsynced >= syncEvery {
		s.unsynced, err = 0, s.sync()
	}
	return n, err
}

// publishTries is how often a directory may vanish, because the last file in it was
// deleted, before a new file gets into it.
const publishTries = 5

// errFileInPath: a path cannot be made, because a part of it is a file.
var errFileInPath = errors.New("a file of the volume has the name of a directory of this path; choose another path")

// publish gives a temporary file its name.
func (s *Store) publish(temporary, key string, overwrite bool) error {
	dir := path.Dir(key)
	for try := 1; ; try++ {
		if err := s.root.MkdirAll(dir, dirMode); errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTDIR) {
			return fmt.Errorf("%w: %w", errFileInPath, err)
		} else if err != nil {
			return err
		}
		err := s.rename(temporary, key, overwrite)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || try == publishTries {
			return err
		}
	}
	// The name, and those of new directories above it, must survive a crash too.
	for ; ; dir = path.Dir(dir) {
		if err := s.syncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if dir == "." {
			return nil
		}
	}
}

func (s *Store) rename(temporary, key string, overwrite bool) error {
	if overwrite {
		return s.root.Rename(temporary, key)
	}
	// A link fails if the name is taken, which a rename does not.
	err := s.root.Link(temporary, key)
	switch {
	case err == nil:
		return s.root.Remove(temporary)
	case errors.Is(err, fs.ErrExist):
		return err
	case !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EPERM):
		return err
	}
	// The file system has no links.
	if _, err := s.root.Lstat(key); err == nil {
		return fs.ErrExist
	}
	return s.root.Rename(temporary, key)
}

func (s *Store) syncDir(name string) error {
	dir, err := s.root.Open(name)
	if err != nil {
		return err
	}
	err = dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil // the file system does not sync directories
	}
	return errors.Join(err, dir.Close())
}

// Get implements objectstore.Store.
func (s *Store) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	const op = "get"
	if err := checkKey(op, key); err != nil {
		return nil, err
	}
	file, err := s.root.Open(key)
	if err != nil {
		return nil, failed(op, key, err, objectstore.ErrNotFound)
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, &objectstore.Error{Op: op, Key: key, Kind: objectstore.ErrNotFound, Cause: err}
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return nil, errors.Join(failed(op, key, err, nil), file.Close())
	}
	var r io.Reader = &contextReader{ctx: ctx, r: file}
	if length >= 0 {
		r = io.LimitReader(r, length)
	}
	return struct {
		io.Reader
		io.Closer
	}{r, file}, nil
}

// Stat implements objectstore.Store.
func (s *Store) Stat(_ context.Context, key string) (objectstore.Object, error) {
	const op = "stat"
	if err := checkKey(op, key); err != nil {
		return objectstore.Object{}, err
	}
	info, err := s.root.Stat(key)
	if err != nil {
		return objectstore.Object{}, failed(op, key, err, objectstore.ErrNotFound)
	}
	if !info.Mode().IsRegular() {
		return objectstore.Object{}, &objectstore.Error{Op: op, Key: key, Kind: objectstore.ErrNotFound}
	}
	return objectstore.Object{Key: key, Size: info.Size(), Modified: info.ModTime()}, nil
}

// List implements objectstore.Store.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[objectstore.Object, error] {
	return func(yield func(objectstore.Object, error) bool) {
		objects, err := walk(ctx, s.root.FS(), prefix)
		if err != nil {
			yield(objectstore.Object{}, failed("list", prefix, err, nil))
			return
		}
		for _, object := range objects {
			if !yield(object, nil) {
				return
			}
		}
	}
}

// walk lists the files of a volume. A directory that cannot be read may hold the newest backup: without an error, a restore
// would take an older one. Only lostAndFound never holds a backup.
func walk(ctx context.Context, volume fs.FS, prefix string) ([]objectstore.Object, error) {
	var objects []objectstore.Object
	start, _ := path.Split(prefix)
	if start = path.Clean(start); !fs.ValidPath(start) {
		return nil, nil
	}
	err := fs.WalkDir(volume, start, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			return nil // it went while we looked, or a file stands in its place
		case errors.Is(err, fs.ErrPermission) && name == lostAndFound:
			return fs.SkipDir
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case entry.IsDir() && (name == temporaryDir || !strings.HasPrefix(prefix, name+"/") && !strings.HasPrefix(name, prefix) && name != "."):
			return fs.SkipDir
		case !entry.Type().IsRegular() || !strings.HasPrefix(name, prefix):
			return nil
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		objects = append(objects, objectstore.Object{Key: name, Size: info.Size(), Modified: info.ModTime()})
		return nil
	})
	// A walk goes by names; keys sort by their bytes, in which a slash counts.
	slices.SortFunc(objects, func(a, b objectstore.Object) int { return strings.Compare(a.Key, b.Key) })
	return objects, err
}

// Delete implements objectstore.Store. Directories that become empty go too.
func (s *Store) Delete(_ context.Context, key string) error {
	const op = "delete"
	if err := checkKey(op, key); err != nil {
		return err
	}
	err := s.root.Remove(key)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil // a file stands where the key needs a directory, and stays
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failed(op, key, err, nil)
	}
	// A directory that is not empty, or that another program has removed, ends it.
	for dir := path.Dir(key); dir != "." && s.root.Remove(dir) == nil; dir = path.Dir(dir) {
	}
	return nil
}

// temporaryName is what rand.Text gives.
var temporaryName = regexp.MustCompile(`^[A-Z2-7]{26,}$`)

// AbortUploads implements objectstore.Store. What is being written does not have its key
// yet, so leftovers of every prefix go: only this package writes files of such names into
// that directory.
func (s *Store) AbortUploads(ctx context.Context, _ string, _ func(string) bool, before time.Time) (int, error) {
	entries, err := fs.ReadDir(s.root.FS(), temporaryDir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, failed("abort uploads", temporaryDir, err, nil)
	}
	aborted := 0
	for _, entry := range entries {
		if ctx.Err() != nil {
			return aborted, context.Cause(ctx)
		}
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || !temporaryName.MatchString(entry.Name()) || !info.ModTime().Before(before) {
			continue
		}
		if err := s.root.Remove(path.Join(temporaryDir, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return aborted, failed("abort uploads", entry.Name(), err, nil)
		}
		aborted++
	}
	return aborted, nil
}

// checkKey rejects keys that are no paths of files below the root.
func checkKey(op, key string) error {
	if !fs.ValidPath(key) || key == "." || key == temporaryDir || strings.HasPrefix(key, temporaryDir+"/") {
		return &objectstore.Error{Op: op, Key: key, Cause: errors.New("the key must be a relative path and have no empty part, nor one that is a dot or two")}
	}
	return nil
}

// failed wraps an error of the file system; absent is what a missing file means.
func failed(op, key string, err, absent error) error {
	e := &objectstore.Error{Op: op, Key: key, Cause: err}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		e.Kind = objectstore.ErrNoSpace
	case errors.Is(err, fs.ErrExist):
		e.Kind = objectstore.ErrExists
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		e.Kind = objectstore.ErrDenied
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		e.Kind = absent
	}
	return e
}

// contextReader fails once ctx has ended.
type contextReader struct {
	ctx context.Context //nolint:containedctx // a reader has no context of its own
	r   io.Reader
}

// Read implements io.Reader.
func (c *contextReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, fmt.Errorf("reading: %w", context.Cause(c.ctx))
	}
	return c.r.Read(p)
}
