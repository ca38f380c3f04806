// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// withTool makes a real program of etcd's the only one in PATH.
func withTool(t *testing.T, program string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(storetest.Program(t, program), filepath.Join(dir, "etcdutl")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

// fetched returns the snapshot of a cluster with some keys, as a file.
func fetched(t *testing.T, b *bench) (*agent.Result, string) {
	t.Helper()
	b.cluster.Member("m0").Put(100)
	saved := b.mustRun(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutDirectory))
	result, name := b.fetch(saved.Key, nil)
	if result.Error != nil {
		t.Fatal(result.Error)
	}
	return saved, name
}

func restoreRequest(name, dataDir string) *agent.Request {
	return &agent.Request{ID: "restore-1", Restore: &agent.Restore{
		File: name, DataDir: dataDir, Name: "n", InitialCluster: "n=http://127.0.0.1:2380", InitialClusterToken: "t",
		PeerURLs: []string{"http://127.0.0.1:2380"},
	}}
}

func TestRestore(t *testing.T) {
	withTool(t, "etcdutl")
	b := newBench(t, etcdtest.New(t))
	saved, name := fetched(t, b)
	dataDir := filepath.Join(t.TempDir(), "data")
	request := restoreRequest(name, dataDir)
	request.Restore.RevisionBump = 1_000_000

	result := b.mustRun(agent.CommandRestore, request)
	if result.Revision != saved.Revision+1_000_000 || result.Keys != 100 || result.AlreadyDone {
		t.Errorf("restored %+v, want revision %d", result, saved.Revision+1_000_000)
	}
	for _, part := range []string{"member/snap/db", "member/wal"} {
		if _, err := os.Stat(filepath.Join(dataDir, part)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dataDir, workDir)); !os.IsNotExist(err) {
		t.Errorf("the working directory is still there: %v", err)
	}
	if again := b.mustRun(agent.CommandRestore, request); !again.AlreadyDone {
		t.Errorf("another attempt: %+v", again)
	}
	// Another restore must not touch it.
	request.ID = "restore-2"
	b.mustFail(agent.CommandRestore, request, agent.ClassExists)
}

func TestRestoreAfterKill(t *testing.T) {
	withTool(t, "etcdutl")
	b := newBench(t, etcdtest.New(t))
	_, name := fetched(t, b)
	dataDir := t.TempDir()
	// Half of a restore, and the marker of one that never got to its data.
	half := filepath.Join(dataDir, workDir, "data", "member")
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dataDir, markerFile), []byte("restore-1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if result := b.mustRun(agent.CommandRestore, restoreRequest(name, dataDir)); result.AlreadyDone {
		t.Error("half of a restore counted as done")
	}
}

func TestRestoreKeepsUnknownData(t *testing.T) {
	withTool(t, "etcdutl")
	b := newBench(t, etcdtest.New(t))
	_, name := fetched(t, b)
	dataDir := t.TempDir()
	kept := filepath.Join(dataDir, "member", "snap", "db")
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kept, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.mustFail(agent.CommandRestore, restoreRequest(name, dataDir), agent.ClassExists)
	if raw, err := os.ReadFile(kept); err != nil || string(raw) != "precious" {
		t.Errorf("the data was touched: %q, %v", raw, err)
	}
}

func TestScratchRestore(t *testing.T) {
	withTool(t, "etcdutl")
	b := newBench(t, etcdtest.New(t))
	saved, name := fetched(t, b)
	dataDir := t.TempDir()
	request := &agent.Request{ID: "s", Restore: &agent.Restore{File: name, DataDir: dataDir, Scratch: true}}
	if result := b.mustRun(agent.CommandRestore, request); !result.Verified || result.Revision != saved.Revision || result.Keys != 100 {
		t.Errorf("%+v", result)
	}
	if entries, err := os.ReadDir(dataDir); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}

	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, raw[:len(raw)-4096], 0o600); err != nil {
		t.Fatal(err)
	}
	b.mustFail(agent.CommandRestore, request, agent.ClassCorrupt)
}

func TestNoTool(t *testing.T) {
	if _, err := os.Stat("/usr/local/bin/etcdutl"); err == nil {
		t.Skip("etcdutl is installed where it is always looked for, so its absence cannot be tried here")
	}
	t.Setenv("PATH", t.TempDir())
	b := newBench(t, etcdtest.New(t))
	_, name := fetched(t, b)
	b.mustFail(agent.CommandRestore, restoreRequest(name, t.TempDir()), agent.ClassUnsupported)
}

func TestInstall(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(program, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Install(program, dir); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "agent"))
	if err != nil || info.Mode().Perm() != programMode {
		t.Errorf("%v, %v", info, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if err := Install(program, filepath.Join(dir, "none")); err == nil {
		t.Error("installed into a directory that is not there")
	}
}
