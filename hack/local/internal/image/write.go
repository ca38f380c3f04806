// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// File is one entry of an image. Exactly one of Source, Data, Link and Dir is set.
type File struct {
	Dest   string // absolute path in the image
	Source string // a file to copy; it stays executable if it is
	Data   []byte // the content itself
	Link   string // the target of a symbolic link
	Dir    bool
	// Mode is the mode of a file made from Data (0: 0644) or of a directory (0: 0755).
	Mode fs.FileMode
}

// Spec describes an image.
type Spec struct {
	Ref        string
	Entrypoint []string
	Command    []string // like Entrypoint, but a pod's args replace it
	User       string
	Files      []File
}

// epoch is the time of everything in an image.
var epoch = time.Unix(0, 0).UTC()

// Base returns the files that an image needs beside its programs: users by name,
// and a directory that every user can write to.
func Base() []File {
	return []File{
		{Dest: "/etc/passwd", Data: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n")},
		{Dest: "/etc/group", Data: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{Dest: "/tmp", Dir: true, Mode: 0o777 | fs.ModeSticky},
	}
}

type containerConfig struct {
	User       string   `json:"User,omitempty"`
	Env        []string `json:"Env"`
	Entrypoint []string `json:"Entrypoint,omitempty"`
	Cmd        []string `json:"Cmd,omitempty"`
	WorkingDir string   `json:"WorkingDir"`
}

type imageConfig struct {
	Architecture string          `json:"architecture"`
	OS           string          `json:"os"`
	Created      time.Time       `json:"created"`
	Config       containerConfig `json:"config"`
	RootFS       struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
	History []historyEntry `json:"history"`
}

type historyEntry struct {
	Created   time.Time `json:"created"`
	CreatedBy string    `json:"created_by"`
}

type manifestEntry struct {
	Config   string   `json:"Config"`
	RepoTags []string `json:"RepoTags"`
	Layers   []string `json:"Layers"`
}

// Write writes the archive of an image to a file, replacing it as a whole.
func Write(spec Spec, file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("writing the image %s: %w", spec.Ref, err)
	}
	out, err := os.Create(file + ".next")
	if err != nil {
		return fmt.Errorf("writing the image %s: %w", spec.Ref, err)
	}
	defer func() { _ = os.Remove(out.Name()) }()
	defer out.Close()
	if err := write(spec, out); err != nil {
		return fmt.Errorf("writing the image %s: %w", spec.Ref, err)
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("writing the image %s: %w", spec.Ref, err)
	}
	return os.Rename(out.Name(), file)
}

func write(spec Spec, out io.Writer) error {
	// The layer's digest and size come before the layer itself, so it is made
	// twice: reading the files again costs less than keeping a copy.
	hash := sha256.New()
	var size counter
	if err := writeLayer(spec.Files, io.MultiWriter(hash, &size)); err != nil {
		return err
	}
	layer := hex.EncodeToString(hash.Sum(nil))

	config := imageConfig{Architecture: runtime.GOARCH, OS: "linux", Created: epoch}
	config.Config = containerConfig{
		User:       spec.User,
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Entrypoint: spec.Entrypoint,
		Cmd:        spec.Command,
		WorkingDir: "/",
	}
	config.RootFS.Type = "layers"
	config.RootFS.DiffIDs = []string{"sha256:" + layer}
	config.History = []historyEntry{{Created: epoch, CreatedBy: "etcd-operator hack/local"}}
	configJSON, err := json.Marshal(config)
	if err != nil {
		return err
	}
	configSum := sha256.Sum256(configJSON)
	configName := hex.EncodeToString(configSum[:]) + ".json"
	manifest, err := json.Marshal([]manifestEntry{{
		Config: configName, RepoTags: []string{spec.Ref}, Layers: []string{layer + "/layer.tar"},
	}})
	if err != nil {
		return err
	}

	archive := tar.NewWriter(out)
	for _, small := range []struct {
		name string
		data []byte
	}{{manifestName, manifest}, {configName, configJSON}} {
		if err := archive.WriteHeader(header(small.name, tar.TypeReg, 0o644, int64(len(small.data)))); err != nil {
			return err
		}
		if _, err := archive.Write(small.data); err != nil {
			return err
		}
	}
	if err := archive.WriteHeader(header(layer+"/layer.tar", tar.TypeReg, 0o644, int64(size))); err != nil {
		return err
	}
	if err := writeLayer(spec.Files, archive); err != nil {
		return err
	}
	return archive.Close()
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func header(name string, kind byte, mode int64, size int64) *tar.Header {
	return &tar.Header{Name: name, Typeflag: kind, Mode: mode, Size: size, ModTime: epoch, Format: tar.FormatPAX}
}

func writeLayer(files []File, out io.Writer) error {
	layer := tar.NewWriter(out)
	complete, err := withParents(files)
	if err != nil {
		return err
	}
	for _, file := range complete {
		if err := writeEntry(layer, file); err != nil {
			return fmt.Errorf("%s: %w", file.Dest, err)
		}
	}
	return layer.Close()
}

// withParents adds the directories that files lie in, and sorts everything.
func withParents(files []File) ([]File, error) {
	entries := map[string]File{}
	for _, file := range files {
		if !path.IsAbs(file.Dest) || path.Clean(file.Dest) != file.Dest || file.Dest == "/" {
			return nil, fmt.Errorf("%q is no absolute path of a file", file.Dest)
		}
		if _, twice := entries[file.Dest]; twice {
			return nil, fmt.Errorf("%s is given twice", file.Dest)
		}
		entries[file.Dest] = file
	}
	for _, file := range files {
		for dir := path.Dir(file.Dest); dir != "/"; dir = path.Dir(dir) {
			if parent, ok := entries[dir]; !ok {
				entries[dir] = File{Dest: dir, Dir: true}
			} else if !parent.Dir {
				return nil, fmt.Errorf("%s is a file, and %s would be in it", dir, file.Dest)
			}
		}
	}
	all := make([]File, 0, len(entries))
	for _, file := range entries {
		all = append(all, file)
	}
	slices.SortFunc(all, func(a, b File) int { return strings.Compare(a.Dest, b.Dest) })
	return all, nil
}

func writeEntry(layer *tar.Writer, file File) error {
	name := strings.TrimPrefix(file.Dest, "/")
	switch {
	case file.Dir:
		mode := int64(0o755)
		if file.Mode != 0 {
			mode = int64(file.Mode.Perm())
		}
		if file.Mode&fs.ModeSticky != 0 {
			mode |= 0o1000
		}
		return layer.WriteHeader(header(name+"/", tar.TypeDir, mode, 0))
	case file.Link != "":
		entry := header(name, tar.TypeSymlink, 0o777, 0)
		entry.Linkname = file.Link
		return layer.WriteHeader(entry)
	case file.Source != "":
		return writeSource(layer, name, file.Source)
	}
	mode := int64(0o644)
	if file.Mode != 0 {
		mode = int64(file.Mode.Perm())
	}
	if err := layer.WriteHeader(header(name, tar.TypeReg, mode, int64(len(file.Data)))); err != nil {
		return err
	}
	_, err := layer.Write(file.Data)
	return err
}

func writeSource(layer *tar.Writer, name, source string) error {
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", source)
	}
	mode := int64(0o644)
	if info.Mode().Perm()&0o111 != 0 {
		mode = 0o755 // the caller's umask must not show in the image
	}
	if err := layer.WriteHeader(header(name, tar.TypeReg, mode, info.Size())); err != nil {
		return err
	}
	_, err = io.Copy(layer, in)
	return err
}
