// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// bash runs a command with the functions of build.sh in a directory.
func bash(t *testing.T, dir, command string, env ...string) {
	t.Helper()
	read(t, "build.sh") // so that a change of it makes the test run again
	script, err := filepath.Abs("build.sh")
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), "bash", "-c", "source '"+script+"'; "+command)
	run.Dir = dir
	run.Env = append(os.Environ(), env...)
	if output, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, output)
	}
}

// TestSameProgram builds a program as hack/release.sh does, in the work tree and in a repository elsewhere
// with another commit, with other settings of the user.
func TestSameProgram(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	again := filepath.Join(dir, "copy")
	var sources []string
	for _, dir := range []string{"cmd/launcher", "pkg/notice"} { // the launcher and what it imports
		files, err := filepath.Glob(filepath.Join(root, dir, "*"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has the files %v, %v", dir, files, err)
		}
		sources = append(sources, files...)
	}
	for _, file := range append(sources, filepath.Join(root, "go.mod"), filepath.Join(root, "go.sum")) {
		name, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(again, name), string(read(t, file)), 0o600)
	}
	bash(t, again, "git init -q && git add . && git -c user.name=test -c user.email=test@example.com commit -q -m sources")
	const ldflags = "ldflags=-s -w -X k8s.io/component-base/version.gitVersion=v1.2.3"
	for _, arch := range []string{"amd64", "arm64"} {
		first, second := filepath.Join(dir, "first", arch), filepath.Join(dir, "second", arch)
		bash(t, root, "compile linux "+arch+" '"+first+"' ./cmd/launcher", ldflags)
		bash(t, again, "compile linux "+arch+" '"+second+"' ./cmd/launcher", ldflags,
			"GOFLAGS=-buildvcs=true", "GOAMD64=v3", "GOARM64=v8.1", "GOWORK="+filepath.Join(dir, "go.work"), "TMPDIR="+dir)
		if !bytes.Equal(read(t, filepath.Join(first, "launcher")), read(t, filepath.Join(second, "launcher"))) {
			t.Errorf("the launcher for linux/%s differs between two directories", arch)
		}
	}
}

// TestSameArchive packs files as hack/release.sh does. Modes, times, the order in which files were made, umask
// and locale differ.
func TestSameArchive(t *testing.T) {
	dir := t.TempDir()
	files := []string{"LICENSE", "kubectl-etcd", "folder/b", "folder/A"}
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	for i, name := range files {
		write(t, filepath.Join(first, name), "content of "+name, 0o600)
		other := files[len(files)-1-i]
		write(t, filepath.Join(second, other), "content of "+other, 0o644)
		if err := os.Chtimes(filepath.Join(second, other), time.Now(), time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	for program, mode := range map[string]os.FileMode{first: 0o700, second: 0o755} {
		if err := os.Chmod(filepath.Join(program, "kubectl-etcd"), mode); err != nil {
			t.Fatal(err)
		}
	}
	const epoch = "SOURCE_DATE_EPOCH=1700000000"
	want := filepath.Join(dir, "first.tar.gz")
	bash(t, dir, "umask 077; pack '"+want+"' first", epoch)

	list, err := exec.CommandContext(t.Context(), "tar", "-tzf", want).Output()
	if names := strings.Fields(string(list)); err != nil || strings.Join(names, " ") != "LICENSE folder/ folder/A folder/b kubectl-etcd" {
		t.Fatalf("the archive holds %v, %v", names, err)
	}
	compare := func(t *testing.T, env ...string) {
		t.Helper()
		got := filepath.Join(t.TempDir(), "second.tar.gz")
		bash(t, dir, "umask 022; pack '"+got+"' second", append(env, epoch, "TZ=Asia/Tokyo")...)
		if !bytes.Equal(read(t, want), read(t, got)) {
			t.Error("the same files gave another archive")
		}
	}
	t.Run("other modes and times", func(t *testing.T) { compare(t) })
	t.Run("locale that ignores case", func(t *testing.T) {
		locales := t.TempDir()
		if output, err := exec.CommandContext(t.Context(), "localedef", "-i", "en_US", "-f", "UTF-8", filepath.Join(locales, "en_US.UTF-8")).CombinedOutput(); err != nil {
			t.Skipf("localedef makes no locale here (package locales): %v: %s", err, output)
		}
		compare(t, "LOCPATH="+locales, "LC_ALL=en_US.UTF-8")
	})
}
