// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Disk is what a container's first process meets on its disk while a tracer changes the results
// of its system calls. The process runs.
type Disk struct {
	tracer *exec.Cmd
	resume sync.Once
	err    error
}

const (
	// attachTimeout is how long the tracer may take to attach to all threads of a process.
	attachTimeout = 10 * time.Second
	// hang is longer than any test takes.
	hang = time.Hour
)

// System calls that reach the disk: those that wait for it, and those that need space on it. A
// socket takes none of them.
const (
	syncCalls  = "fsync,fdatasync"
	spaceCalls = syncCalls + ",pwrite64,fallocate"
)

// HangDisk holds back every fsync and fdatasync of the files with a suffix that a container's
// first process has open, until Resume: what the process has written never reaches the disk.
// It needs strace, which says on its standard error that it is attached.
func HangDisk(ctx context.Context, pod *corev1.Pod, container, suffix string) (*Disk, error) {
	pid, err := ContainerProcess(pod, container)
	if err != nil {
		return nil, err
	}
	files, err := openFiles(pid, suffix)
	if err != nil {
		return nil, err
	}
	return traceDisk(ctx, pid, syncCalls, delay(hang), files...)
}

// HangAllFiles is HangDisk for all files that a process has open or opens later.
func HangAllFiles(ctx context.Context, pid int) (*Disk, error) {
	return traceDisk(ctx, pid, syncCalls, delay(hang))
}

// SlowDisk delays every fsync and fdatasync of a process.
func SlowDisk(ctx context.Context, pid int, by time.Duration) (*Disk, error) {
	return traceDisk(ctx, pid, syncCalls, delay(by))
}

// FullDisk fails every system call of a process that needs space on a disk: no space is left.
func FullDisk(ctx context.Context, pid int) (*Disk, error) {
	return traceDisk(ctx, pid, spaceCalls, "error=ENOSPC")
}

func delay(by time.Duration) string { return fmt.Sprintf("delay_enter=%d", by.Microseconds()) }

// traceDisk attaches a tracer that changes some system calls of a process, on the named files
// only if there are any.
func traceDisk(ctx context.Context, pid int, calls, change string, files ...string) (*Disk, error) {
	args := []string{"-f", "-o", "/dev/null", "-p", strconv.Itoa(pid), "-e", "trace=" + calls, "-e", "inject=" + calls + ":" + change}
	for _, file := range files {
		args = append(args, "-P", file)
	}
	tracer := exec.CommandContext(ctx, "strace", args...)
	said, err := tracer.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := tracer.Start(); err != nil {
		return nil, fmt.Errorf("trace process %d: %w", pid, err)
	}
	d := &Disk{tracer: tracer}
	attached, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		lines, first := bufio.NewScanner(said), true
		for lines.Scan() {
			if first && strings.Contains(lines.Text(), "attached") {
				close(attached)
				first = false
			}
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, attachTimeout)
	defer cancel()
	select {
	case <-attached:
		return d, nil
	case <-ended:
		return nil, errors.Join(fmt.Errorf("attach to process %d: the tracer has ended; the process may have ended, or this machine does not allow tracing", pid), d.Resume())
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("attach to process %d: %w", pid, ctx.Err()), d.Resume())
	}
}

// openFiles returns the regular files with a suffix that a process has open.
func openFiles(pid int, suffix string) ([]string, error) {
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return nil, err
	}
	var files []string
	for _, link := range links {
		file, err := os.Readlink(link)
		if err == nil && filepath.IsAbs(file) && strings.HasSuffix(file, suffix) {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("process %d has no file %q open", pid, "*"+suffix)
	}
	return files, nil
}

// Resume lets the disk work again. It may be called more than once.
func (d *Disk) Resume() error {
	d.resume.Do(func() {
		// A tracer that gets a signal waits for a process that was killed meanwhile, and that
		// process waits for its tracer.
		if err := d.tracer.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			d.err = fmt.Errorf("end the tracer: %w", err)
			return
		}
		_ = d.tracer.Wait() // it was killed, or has ended with the process
	})
	return d.err
}
