// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ErrNoProcess means that a container has no process now.
var ErrNoProcess = errors.New("the container has no process")

// ContainerProcess returns the ID of the first process of a pod's container. The
// nodes of the local Kubernetes are namespaces of this machine, so a container's
// processes are the machine's own, and their cgroup is named after the container.
func ContainerProcess(pod *corev1.Pod, container string) (int, error) {
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if s.Name != container {
			continue
		}
		_, id, found := strings.Cut(s.ContainerID, "://")
		if !found || s.State.Running == nil {
			return 0, fmt.Errorf("container %s of pod %s: %w", container, pod.Name, ErrNoProcess)
		}
		return firstOf(id)
	}
	return 0, fmt.Errorf("pod %s has no container %s", pod.Name, container)
}

func firstOf(containerID string) (int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return 0, err
	}
	var pids []int
	for _, file := range files {
		groups, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(groups), containerID) {
			continue // Processes come and go while one looks.
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return 0, err
		}
		pids = append(pids, pid)
	}
	if len(pids) == 0 {
		return 0, fmt.Errorf("container %s: %w", containerID, ErrNoProcess)
	}
	return slices.Min(pids), nil
}

// Signal sends a signal to the first process of a pod's container.
func Signal(pod *corev1.Pod, container string, signal syscall.Signal) error {
	pid, err := ContainerProcess(pod, container)
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, signal); err != nil {
		return fmt.Errorf("signal %s to process %d of pod %s: %w", signal, pid, pod.Name, err)
	}
	return nil
}

// ResidentMemory returns the bytes of memory that a process holds.
func ResidentMemory(pid int) (int64, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 3 && fields[0] == "VmRSS:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			return kib * 1024, err
		}
	}
	return 0, fmt.Errorf("process %d: no VmRSS: %w", pid, errors.Join(lines.Err(), ErrNoProcess))
}

// ticksPerSecond is the unit of the times in /proc, fixed on Linux.
const ticksPerSecond = 100

// ProcessorSeconds returns the processor time that a process has used.
func ProcessorSeconds(pid int) (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name in the second field may hold blanks; it ends at the last bracket.
	_, rest, found := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), ") ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 13 {
		return 0, fmt.Errorf("process %d: cannot read its times", pid)
	}
	var ticks int64
	for _, field := range fields[11:13] { // user and system time
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return float64(ticks) / ticksPerSecond, nil
}

// QueuedTime returns how long the threads of a process have waited for a processor, added up.
func QueuedTime(pid int) (time.Duration, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	var queued time.Duration
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // threads come and go while one looks
		}
		var running, waited int64
		if _, err := fmt.Sscan(string(text), &running, &waited); err != nil {
			return 0, fmt.Errorf("read %s: %w", file, err)
		}
		queued += time.Duration(waited)
	}
	return queued, nil
}
