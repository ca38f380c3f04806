// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Path is where the started programs look for others, whatever the caller's own
// PATH is: sbin is missing from many users' PATH.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Spec describes a program to start.
type Spec struct {
	Name string   // names the record; unique in the cluster
	Exe  string   // the program's file
	Args []string // all arguments, the name by which the program is called included
	Env  []string // beside PATH and the mark
	Log  string   // its output is appended here
	// Netns is the file of the network namespace to start it in; empty: the caller's.
	Netns string
	// Namespaces are the clone(2) flags of further, new namespaces.
	Namespaces uintptr
}

// Record is what is kept on disk about a started program.
type Record struct {
	Name  string   `json:"name"`
	PID   int      `json:"pid"`
	Start uint64   `json:"start"`
	Boot  string   `json:"boot"`
	Args  []string `json:"args"`
	Log   string   `json:"log"`
}

func (r Record) stat() Stat { return Stat{PID: r.PID, Start: r.Start} }

// IsAlive says whether the recorded program still runs.
func (r Record) IsAlive() bool { return r.Boot == bootID() && r.stat().IsAlive() }

// Table is the set of programs of one cluster.
type Table struct {
	Dir  string // where the records are
	Mark string // the value of MarkEnv
}

func (t Table) file(name string) string { return filepath.Join(t.Dir, name+".json") }

// Get returns the record of a program that runs; ok is false if it does not.
func (t Table) Get(name string) (record Record, ok bool) {
	raw, err := os.ReadFile(t.file(name))
	if err != nil || json.Unmarshal(raw, &record) != nil {
		return Record{}, false
	}
	return record, record.IsAlive()
}

// Names returns the names of all recorded programs, whether they run or not.
func (t Table) Names() ([]string, error) {
	files, err := filepath.Glob(t.file("*"))
	if err != nil {
		return nil, err
	}
	for i, file := range files {
		files[i] = strings.TrimSuffix(filepath.Base(file), ".json")
	}
	slices.Sort(files)
	return files, nil
}

// Start starts a program in a session of its own, so that nothing which happens
// to the caller's terminal reaches it, and records it.
func (t Table) Start(spec Spec) (Record, error) {
	if err := os.MkdirAll(filepath.Dir(spec.Log), 0o755); err != nil {
		return Record{}, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return Record{}, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	defer log.Close()
	cmd := &exec.Cmd{
		Path:        spec.Exe,
		Args:        spec.Args,
		Dir:         "/",
		Env:         append([]string{"PATH=" + Path, "HOME=/root", MarkEnv + "=" + t.Mark}, spec.Env...),
		Stdout:      log,
		Stderr:      log,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Cloneflags: spec.Namespaces},
	}
	if err := InNetns(spec.Netns, cmd.Start); err != nil {
		return Record{}, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	go func() { _ = cmd.Wait() }() // or it would stay as a zombie while this command runs
	stat, err := ReadStat(cmd.Process.Pid)
	if err != nil {
		return Record{}, fmt.Errorf("%s ended at once, see %s", spec.Name, spec.Log)
	}
	record := Record{Name: spec.Name, PID: stat.PID, Start: stat.Start, Boot: bootID(), Args: spec.Args, Log: spec.Log}
	raw, err := json.Marshal(record)
	if err != nil {
		return Record{}, err
	}
	if err := os.MkdirAll(t.Dir, 0o755); err != nil {
		return Record{}, fmt.Errorf("recording %s: %w", spec.Name, err)
	}
	if err := WriteFile(t.file(spec.Name), raw, 0o644); err != nil {
		return Record{}, fmt.Errorf("recording %s: %w", spec.Name, err)
	}
	return record, nil
}

// WriteFile replaces a file as a whole: a reader, or a run after this run was
// killed, sees the old content or the new content.
func WriteFile(name string, data []byte, mode fs.FileMode) error {
	next := name + ".next"
	if err := os.WriteFile(next, data, mode); err != nil {
		return err
	}
	return os.Rename(next, name)
}

// Stop ends a program with everything that it started, and removes its record:
// SIGTERM first, SIGKILL after grace.
func (t Table) Stop(ctx context.Context, name string, grace time.Duration) error {
	record, ok := t.Get(name)
	if ok {
		family, err := Descendants(record.PID)
		if err == nil {
			err = End(ctx, append(family, record.stat()), grace)
		}
		if err != nil {
			return fmt.Errorf("stopping %s: %w", name, err)
		}
	}
	if err := os.Remove(t.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// End stops processes and waits until they no longer exist. With no grace they are
// killed at once.
func End(ctx context.Context, stats []Stat, grace time.Duration) error {
	signal := func(sig syscall.Signal) error {
		for _, stat := range stats {
			if err := stat.Signal(sig); err != nil {
				return err
			}
		}
		return nil
	}
	gone := func() bool {
		return !slices.ContainsFunc(stats, Stat.IsAlive)
	}
	if grace > 0 {
		if err := signal(syscall.SIGTERM); err != nil {
			return err
		}
		graceful, cancel := context.WithTimeout(ctx, grace)
		defer cancel()
		if err := Poll(graceful, gone); err == nil {
			return nil
		}
	}
	if err := signal(syscall.SIGKILL); err != nil {
		return err
	}
	if err := Poll(ctx, gone); err != nil {
		return fmt.Errorf("a killed process does not end: %w", err)
	}
	return nil
}

// Poll waits until done returns true.
func Poll(ctx context.Context, done func() bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// InNetns runs f on a thread inside the network namespace whose file is given;
// what f starts or dials belongs to that namespace.
func InNetns(netns string, f func() error) error {
	if netns == "" {
		return f()
	}
	result := make(chan error, 1)
	go func() {
		// Never unlocked: the thread ends with the goroutine instead of going back
		// to the pool in the wrong namespace.
		runtime.LockOSThread()
		fd, err := unix.Open(netns, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			result <- fmt.Errorf("opening the network namespace %s: %w", netns, err)
			return
		}
		defer unix.Close(fd)
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			result <- fmt.Errorf("entering the network namespace %s: %w", netns, err)
			return
		}
		result <- f()
	}()
	return <-result
}

// LogTail returns the last lines of a log, for the message that reports a death.
func LogTail(file string, lines int) string {
	raw, err := readEnd(file, 64<<10)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(raw), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func readEnd(file string, size int64) ([]byte, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return nil, err
	}
	if _, err := in.Seek(max(0, info.Size()-size), io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(in)
}
