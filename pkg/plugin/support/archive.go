// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package support

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"
)

// Suffix of the archive while it is incomplete.
const Suffix = ".part"

// ErrExists means that the file of the archive exists.
var ErrExists = errors.New("the file exists")

// Archive is a file with what was collected.
type Archive struct {
	file   *os.File
	name   string
	folder string
	time   time.Time
	zip    *gzip.Writer
	tar    *tar.Writer
	files  []string
}

// Create begins an archive. Its files are in a folder. The file must not exist; it gets its name
// at the end.
func Create(name, folder string, at time.Time) (*Archive, error) {
	for _, existing := range []string{name, name + Suffix} {
		if _, err := os.Lstat(existing); err == nil {
			return nil, fmt.Errorf("%w: %s; remove it, or choose another name with -f", ErrExists, existing)
		}
	}
	// Names of objects and addresses are for the user first.
	file, err := os.OpenFile(filepath.Clean(name+Suffix), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create the archive: %w", err)
	}
	a := &Archive{file: file, name: name, folder: folder, time: at, zip: gzip.NewWriter(file)}
	a.tar = tar.NewWriter(a.zip)
	return a, nil
}

// Add adds a file.
func (a *Archive) Add(name string, content []byte) error {
	header := &tar.Header{Name: path.Join(a.folder, name), Mode: 0o600, Size: int64(len(content)), ModTime: a.time, Typeflag: tar.TypeReg}
	if err := a.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("write %s to the archive: %w", name, err)
	}
	if _, err := a.tar.Write(content); err != nil {
		return fmt.Errorf("write %s to the archive: %w", name, err)
	}
	a.files = append(a.files, name)
	return nil
}

// Files returns the names of the files so far.
func (a *Archive) Files() []string { return a.files }

// Close ends the archive and gives it its name. It returns its size.
func (a *Archive) Close() (int64, error) {
	for _, part := range []io.Closer{a.tar, a.zip} {
		if err := part.Close(); err != nil {
			return 0, errors.Join(fmt.Errorf("end the archive: %w", err), a.Abandon())
		}
	}
	info, err := a.file.Stat()
	if err == nil {
		err = a.file.Sync()
	}
	if err != nil {
		return 0, errors.Join(fmt.Errorf("end the archive: %w", err), a.Abandon())
	}
	if err := a.file.Close(); err != nil {
		return 0, errors.Join(fmt.Errorf("end the archive: %w", err), os.Remove(a.name+Suffix))
	}
	if _, err := os.Lstat(a.name); err == nil {
		return 0, errors.Join(fmt.Errorf("%w: %s was made meanwhile; choose another name with -f", ErrExists, a.name), os.Remove(a.name+Suffix))
	}
	if err := os.Rename(a.name+Suffix, a.name); err != nil {
		return 0, errors.Join(fmt.Errorf("name the archive: %w", err), os.Remove(a.name+Suffix))
	}
	return info.Size(), nil
}

// Abandon removes an incomplete archive.
func (a *Archive) Abandon() error {
	return errors.Join(a.file.Close(), os.Remove(a.name+Suffix))
}
