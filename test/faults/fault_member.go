// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	// lookInterval is the time between two looks for the process of a member that ended.
	lookInterval = 250 * time.Millisecond
	// diskDelay is what a slow disk adds to every write that must be safe.
	diskDelay = 200 * time.Millisecond
)

// Ways in which a disk fails a process.
func slowDisk(ctx context.Context, pid int) (*harness.Disk, error) {
	return harness.SlowDisk(ctx, pid, diskDelay)
}

func hungDisk(ctx context.Context, pid int) (*harness.Disk, error) {
	return harness.HangAllFiles(ctx, pid)
}

func fullDisk(ctx context.Context, pid int) (*harness.Disk, error) {
	return harness.FullDisk(ctx, pid)
}

// brokenDisk is a disk that fails the target's process, and each process that Kubernetes
// starts in its place.
type brokenDisk struct {
	stage *stage
	fail  func(context.Context, int) (*harness.Disk, error)
	// pid is the process that the disk fails now.
	pid  int
	disk *harness.Disk
}

// diskFault is a fault of the disk that the target's process meets.
func diskFault(fail func(context.Context, int) (*harness.Disk, error)) func(context.Context, *stage) (undo, error) {
	return func(ctx context.Context, s *stage) (undo, error) {
		// The tracer lives longer than the context of the begin.
		following, stop := context.WithCancel(context.WithoutCancel(ctx))
		d := &brokenDisk{stage: s, fail: fail}
		if err := d.follow(following); err != nil {
			stop()
			return nil, err
		}
		var group sync.WaitGroup
		group.Go(func() { d.run(following) })
		return func(context.Context) error {
			// The tracer ends with the context, too, but only Resume waits for its end.
			var err error
			stop()
			group.Wait()
			if d.disk != nil {
				err = d.disk.Resume()
			}
			return err
		}, nil
	}
}

// run follows the process until the fault ends.
func (d *brokenDisk) run(ctx context.Context) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			// The process may end while the tracer attaches; the next look finds the next one.
			if err := d.follow(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, harness.ErrNoProcess) {
				d.stage.logf("the disk of %s: %v", d.stage.target.Name, err)
			}
		}
	}
}

// follow makes the disk fail the process of now.
func (d *brokenDisk) follow(ctx context.Context) error {
	pod := d.stage.fresh()
	if pod == nil {
		return nil // the member was removed
	}
	pid, err := harness.ContainerProcess(pod, memberContainer)
	if err != nil {
		return fmt.Errorf("find the process of %s: %w", pod.Name, err)
	}
	if pid == d.pid {
		return nil
	}
	if d.disk != nil {
		if err := d.disk.Resume(); err != nil {
			return err
		}
		d.disk = nil
	}
	disk, err := d.fail(ctx, pid)
	if err != nil {
		return fmt.Errorf("process of %s: %w", pod.Name, err)
	}
	d.pid, d.disk = pid, disk
	return nil
}

// stopProcess stops the target's process, as a debugger or a hung machine does.
func stopProcess(_ context.Context, s *stage) (undo, error) {
	pid, err := harness.ContainerProcess(s.target, memberContainer)
	if err != nil {
		return nil, fmt.Errorf("find the process of %s: %w", s.target.Name, err)
	}
	if err := signalStop(s.target); err != nil {
		return nil, err
	}
	return func(context.Context) error {
		// Kubernetes may have ended the process, because it did not respond to probes.
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("resume process %d of %s: %w", pid, s.target.Name, err)
		}
		return nil
	}, nil
}

// signalStop stops the process of a member.
func signalStop(pod *corev1.Pod) error { return harness.Signal(pod, memberContainer, syscall.SIGSTOP) }
