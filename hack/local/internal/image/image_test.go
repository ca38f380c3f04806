// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestWriteIsDeterministic(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("binary"), 0o700); err != nil {
		t.Fatal(err)
	}
	files := append(Base(), File{Dest: "/usr/bin/program", Source: program}, File{Dest: "/usr/bin/link", Link: "program"})
	write := func(name string, files []File) []byte {
		out := filepath.Join(dir, name)
		if err := Write(Spec{Ref: "example.com/a:1", Entrypoint: []string{"/usr/bin/program"}, User: "65532", Files: files}, out); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	first := write("one.tar", files)

	// Neither time, nor order, nor the umask of the build matters.
	if err := os.Chtimes(program, time.Now(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(files)
	if !bytes.Equal(first, write("two.tar", files)) {
		t.Error("the same files gave another archive")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("leftovers beside the archives: %v %v", entries, err)
	}
}

func TestInspectFindsWhatWasWritten(t *testing.T) {
	dir := t.TempDir()
	ids := map[string]bool{}
	for _, user := range []string{"", "65532"} {
		out := filepath.Join(dir, "image"+user+".tar")
		if err := Write(Spec{Ref: "example.com/a:1", Entrypoint: []string{"/a"}, User: user, Files: Base()}, out); err != nil {
			t.Fatal(err)
		}
		infos, err := Inspect(out)
		if err != nil {
			t.Fatal(err)
		}
		if len(infos) != 1 || !slices.Equal(infos[0].Refs, []string{"example.com/a:1"}) {
			t.Fatalf("got %v", infos)
		}
		ids[infos[0].ID] = true
	}
	if len(ids) != 2 {
		t.Error("two different images have the same id")
	}
	broken := filepath.Join(dir, "broken.tar")
	if err := os.WriteFile(broken, make([]byte, 1024), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Inspect(broken); err == nil {
		t.Error("an archive without a manifest was accepted")
	}
}

func TestLayer(t *testing.T) {
	var out bytes.Buffer
	err := writeLayer(append(Base(), File{Dest: "/a/b/c", Data: []byte("x"), Mode: 0o755}), &out)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for reader := tar.NewReader(&out); ; {
		entry, err := reader.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got[entry.Name] = entry.Mode
	}
	for name, mode := range map[string]int64{"a/": 0o755, "a/b/": 0o755, "a/b/c": 0o755, "tmp/": 0o1777, "etc/passwd": 0o644} {
		if got[name] != mode {
			t.Errorf("%s: mode %o, want %o", name, got[name], mode)
		}
	}
}

func TestBadPaths(t *testing.T) {
	for name, files := range map[string][]File{
		"relative":      {{Dest: "a"}},
		"unclean":       {{Dest: "/a/../b"}},
		"root":          {{Dest: "/", Dir: true}},
		"twice":         {{Dest: "/a"}, {Dest: "/a"}},
		"below a file":  {{Dest: "/a"}, {Dest: "/a/b"}},
		"missing file":  {{Dest: "/a", Source: "/nonexistent"}},
		"a directory":   {{Dest: "/a", Source: "/"}},
		"with dot dots": {{Dest: "/../a"}},
	} {
		if err := writeLayer(files, io.Discard); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
