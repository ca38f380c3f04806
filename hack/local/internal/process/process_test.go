// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const raw = "42 (a b) c (d) S 7 42 42 0 -1 4194304 62362 0 1 0 417 91 0 0 20 0 10 0 468600 1603432448 71013"
	stat, err := parseStat(42, raw)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Stat{PID: 42, Parent: 7, State: 'S', Start: 468600}); stat != want {
		t.Errorf("got %+v, want %+v", stat, want)
	}
	for _, broken := range []string{"", "42 (a", "42 (a) S 1", "42 (a) S x 42 42 0 -1 4194304 62362 0 1 0 417 91 0 0 20 0 10 0 468600"} {
		if _, err := parseStat(42, broken); err == nil {
			t.Errorf("%q was accepted", broken)
		}
	}
}

func newTable(t *testing.T) Table {
	t.Helper()
	dir := t.TempDir()
	return Table{Dir: filepath.Join(dir, "processes"), Mark: dir}
}

func sleeper(t *testing.T) Spec {
	t.Helper()
	exe, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("no sleep command here")
	}
	return Spec{Name: "sleeper", Exe: exe, Args: []string{"sleep", "60"}, Log: filepath.Join(t.TempDir(), "sleeper.log")}
}

func TestStartFindStop(t *testing.T) {
	table := newTable(t)
	record, err := table.Start(sleeper(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = table.Stop(context.Background(), "sleeper", 0) })
	found, ok := table.Get("sleeper")
	if !ok || found.PID != record.PID {
		t.Fatalf("got %+v %v, want %+v", found, ok, record)
	}
	marked, err := Marked()
	if err != nil || len(marked[table.Mark]) != 1 || marked[table.Mark][0].PID != record.PID {
		t.Errorf("processes with our mark: %+v %v", marked[table.Mark], err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := table.Stop(ctx, "sleeper", time.Second); err != nil {
		t.Fatal(err)
	}
	if found.IsAlive() {
		t.Error("still alive after Stop")
	}
	if names, err := table.Names(); err != nil || len(names) != 0 {
		t.Errorf("records left: %v %v", names, err)
	}
}

// A record may outlive its process, and the pid may be not owned by then:
// that process must not be taken for ours, and must survive Stop.
func TestStaleRecordDoesNotSignalAnotherProgram(t *testing.T) {
	table := newTable(t)
	other := exec.CommandContext(context.Background(), sleeper(t).Exe, "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	stat, err := ReadStat(other.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	for name, stale := range map[string]Record{
		"started at another time": {Name: "x", PID: stat.PID, Start: stat.Start + 1, Boot: bootID()},
		"before a restart":        {Name: "x", PID: stat.PID, Start: stat.Start, Boot: "another"},
	} {
		raw, err := json.Marshal(stale)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(table.Dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := WriteFile(table.file("x"), raw, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, ok := table.Get("x"); ok {
			t.Errorf("%s: another program was taken for ours", name)
		}
		if err := table.Stop(context.Background(), "x", 0); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !stat.IsAlive() {
			t.Fatalf("%s: the other program was killed", name)
		}
	}
}

func TestBrokenRecordIsNoProcess(t *testing.T) {
	table := newTable(t)
	if err := os.MkdirAll(table.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, raw := range []string{"", "{", "null"} {
		if err := os.WriteFile(table.file("x"), []byte(raw), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, ok := table.Get("x"); ok {
			t.Errorf("%q names a process", raw)
		}
	}
}

func TestLogTail(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, []byte(strings.Repeat("line\n", 100_000)+"a\nb\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := LogTail(file, 3); got != "line\na\nb" {
		t.Errorf("got %q", got)
	}
}
