// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// errProc means that /proc does not have the form that Linux gives it.
var errProc = errors.New("/proc does not have the expected form; run the benchmark on Linux")

// cpuSeconds returns the CPU time that each process has used since its start.
func (e *environment) cpuSeconds() (map[string]float64, error) {
	used := map[string]float64{}
	for name, process := range e.processes {
		var now unix.Timespec
		if err := unix.ClockGettime(cpuClock(process.PID()), &now); err != nil {
			return nil, fmt.Errorf("CPU clock of %s: %w", name, err)
		}
		used[name] = time.Duration(now.Nano()).Seconds()
	}
	return used, nil
}

// cpuClock returns the clock that counts the CPU time of all threads of a process, as
// clock_getcpuclockid(3) does. It counts nanoseconds; /proc/PID/stat counts in steps of 10 ms, in
// which a short measurement has errors of several percent.
func cpuClock(pid int) int32 {
	const scheduled = 2
	return int32(^pid)<<3 | scheduled // #nosec G115 -- process IDs have at most 22 bits
}

// residentBytes returns the resident memory of a process.
func (e *environment) residentBytes(name string) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.processes[name].PID()))
	if err != nil {
		return 0, err
	}
	kilobytes, err := numberAfter(status, "VmRSS:")
	return kilobytes * 1024, err
}

// heapBytes returns the bytes of live objects in the heap of a server. Garbage is collected
// twice first: what a pool keeps goes only with the second collection.
func (e *environment) heapBytes(ctx context.Context, clients *clientSet, base string) (float64, error) {
	var profile []byte
	for range 2 {
		var err error
		profile, err = send(ctx, clients.admin, call{method: http.MethodGet, url: base + "/debug/pprof/heap?gc=1&debug=1"})
		if err != nil {
			return 0, err
		}
	}
	return numberAfter(profile, "# HeapAlloc =")
}

// numberAfter returns the number that follows a label.
func numberAfter(text []byte, label string) (float64, error) {
	_, rest, found := bytes.Cut(text, []byte(label))
	fields := bytes.Fields(rest[:min(len(rest), 64)])
	if !found || len(fields) == 0 {
		return 0, fmt.Errorf("%w: %q is missing", errProc, label)
	}
	return strconv.ParseFloat(string(fields[0]), 64)
}
