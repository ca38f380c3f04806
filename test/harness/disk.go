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

// HungDisk is a disk that takes no writes of some files from a container: what the container's
// first process has written never reaches the disk. The process runs.
type HungDisk struct {
	tracer *exec.Cmd
	resume sync.Once
	err    error
}

// attachTimeout is how long the tracer may take to attach to all threads of a process.
const attachTimeout = 10 * time.Second

// HangDisk holds back every fsync and fdatasync of the files with a suffix that a container's
// first process has open, until Resume. It needs strace, which says on its standard error that
// it is attached.
func HangDisk(ctx context.Context, pod *corev1.Pod, container, suffix string) (*HungDisk, error) {
	pid, err := ContainerProcess(pod, container)
	if err != nil {
		return nil, err
	}
	files, err := openFiles(pid, suffix)
	if err != nil {
		return nil, err
	}
	// An hour is longer than any test takes.
	args := []string{"-f", "-o", "/dev/null", "-p", strconv.Itoa(pid), "-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:delay_enter=3600000000"}
	for _, file := range files {
		args = append(args, "-P", file)
	}
	tracer := exec.CommandContext(ctx, "strace", args...)
	said, err := tracer.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := tracer.Start(); err != nil {
		return nil, fmt.Errorf("trace process %d of pod %s: %w", pid, pod.Name, err)
	}
	d := &HungDisk{tracer: tracer}
	attached := make(chan struct{})
	go func() {
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
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("attach to process %d of pod %s: %w", pid, pod.Name, ctx.Err()), d.Resume())
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

// Resume lets the disk take writes again. It may be called more than once.
func (d *HungDisk) Resume() error {
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
