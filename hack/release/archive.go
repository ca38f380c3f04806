// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	modeFile    = 0o644
	modeProgram = 0o755
	modeShared  = 0o1777
)

// archive writes tar archives that depend on nothing but the names and contents of files.
type archive struct{ *tar.Writer }

func (a archive) add(name string, kind byte, mode int64, content []byte) error {
	header := &tar.Header{Name: name, Typeflag: kind, Mode: mode, Size: int64(len(content)), ModTime: epoch, Format: tar.FormatPAX}
	if err := a.WriteHeader(header); err != nil {
		return fmt.Errorf("add %s: %w", name, err)
	}
	if _, err := a.Write(content); err != nil {
		return fmt.Errorf("add %s: %w", name, err)
	}
	return nil
}

func (a archive) copy(source, name string, mode int64) error {
	content, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	return a.add(name, tar.TypeReg, mode, content)
}

// layerOf returns the layer of an image: the programs of a directory, names of users, and a
// directory that every user can write to.
func layerOf(dir, license string) ([]byte, error) {
	programs, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if len(programs) == 0 {
		return nil, fmt.Errorf("%s is empty: build the programs first", dir)
	}
	var out bytes.Buffer
	a := archive{tar.NewWriter(&out)}
	if err := a.copy(license, "LICENSE", modeFile); err != nil {
		return nil, err
	}
	for _, p := range programs { // in the order of their names
		if err := a.copy(filepath.Join(dir, p.Name()), p.Name(), modeProgram); err != nil {
			return nil, err
		}
	}
	for _, entry := range []struct {
		name string
		kind byte
		mode int64
		text string
	}{
		{"etc/", tar.TypeDir, modeProgram, ""},
		{"etc/group", tar.TypeReg, modeFile, "root:x:0:\nnonroot:x:" + user + ":\n"},
		{"etc/passwd", tar.TypeReg, modeFile, "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:" + user + ":" + user + ":nonroot:/tmp:/sbin/nologin\n"},
		{"tmp/", tar.TypeDir, modeShared, ""},
	} {
		if err := a.add(entry.name, entry.kind, entry.mode, []byte(entry.text)); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), a.Close()
}

// writeArchive writes the files of a directory to an archive, in the order of their names.
func writeArchive(dir, file string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	if err := archiveDir(dir, out); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return out.Close()
}

func archiveDir(dir string, out io.Writer) error {
	a := archive{tar.NewWriter(out)}
	// WalkDir goes in the order of the names.
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return a.copy(path, filepath.ToSlash(name), modeFile)
	})
	if err != nil {
		return err
	}
	return a.Close()
}

// readArchive writes the files of an archive into a directory.
func readArchive(file, dir string) error {
	source, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	for entries := tar.NewReader(source); ; {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		name := filepath.FromSlash(entry.Name)
		if entry.Typeflag != tar.TypeReg || !filepath.IsLocal(name) {
			return fmt.Errorf("read %s: %q is not a file below a directory", file, entry.Name)
		}
		if err := readEntry(entries, filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
	}
}

func readEntry(content io.Reader, file string) error {
	if err := os.MkdirAll(filepath.Dir(file), modeProgram); err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	if _, err := io.Copy(out, content); err != nil {
		return err
	}
	return out.Close()
}
