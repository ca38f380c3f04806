// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	corev1 "k8s.io/api/core/v1"
)

// Wipe empties a directory of the containers of some pods, as another disk in its place
// does, and then ends their processes. All have lost it before the first one ends.
func Wipe(container, dir string, pods ...*corev1.Pod) error {
	var pids []int
	for _, pod := range pods {
		pid, err := ContainerProcess(pod, container)
		if err != nil {
			return err
		}
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return fmt.Errorf("stop process %d of pod %s: %w", pid, pod.Name, err)
		}
		pids = append(pids, pid)
	}
	var errs []error
	for _, pid := range pids {
		root := rootOf(pid, dir)
		entries, err := os.ReadDir(root)
		if err == nil && len(entries) == 0 {
			err = fmt.Errorf("%s is empty already", root)
		}
		errs = append(errs, err)
		for _, e := range entries {
			errs = append(errs, os.RemoveAll(filepath.Join(root, e.Name())))
		}
	}
	for _, pid := range pids {
		errs = append(errs, syscall.Kill(pid, syscall.SIGKILL))
	}
	return errors.Join(errs...)
}

// Damage flips a bit in the middle of what a container has written to its newest
// write-ahead log below a directory, and ends its process.
func Damage(container, dir string, pod *corev1.Pod) error {
	pid, err := ContainerProcess(pod, container)
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop process %d of pod %s: %w", pid, pod.Name, err)
	}
	return errors.Join(flip(rootOf(pid, dir)), syscall.Kill(pid, syscall.SIGKILL))
}

func rootOf(pid int, dir string) string { return filepath.Join("/proc", fmt.Sprint(pid), "root", dir) }

func flip(root string) error {
	var log string
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".wal" {
			log = path // they are named in their order
		}
		return err
	})
	if err != nil || log == "" {
		return errors.Join(err, fmt.Errorf("a log below %s: %q", root, log))
	}
	content, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	// The file is longer than what was written to it.
	written := len(bytes.TrimRight(content, "\x00"))
	file, err := os.OpenFile(log, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt([]byte{content[written/2] ^ 1}, int64(written/2))
	return errors.Join(err, file.Sync(), file.Close())
}
