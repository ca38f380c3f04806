// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
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
		root := filepath.Join("/proc", fmt.Sprint(pid), "root", dir)
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
