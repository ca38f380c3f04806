// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Stat is the part of /proc/PID/stat that identifies a process.
type Stat struct {
	PID    int
	Parent int
	State  byte
	// Start is the start time in clock ticks since boot: with the pid it names a
	// process uniquely until the next boot.
	Start uint64
}

// ReadStat reads the state of one process.
func ReadStat(pid int) (Stat, error) {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return Stat{}, err
	}
	return parseStat(pid, string(raw))
}

func parseStat(pid int, raw string) (Stat, error) {
	// The second field is the program's name in brackets and may hold anything,
	// brackets and blanks included: count from the last bracket.
	end := strings.LastIndexByte(raw, ')')
	if end < 0 {
		return Stat{}, fmt.Errorf("cannot read the state of process %d: no name in %q", pid, raw)
	}
	fields := strings.Fields(raw[end+1:])
	if len(fields) < 20 {
		return Stat{}, fmt.Errorf("cannot read the state of process %d: %d fields", pid, len(fields))
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return Stat{}, fmt.Errorf("cannot read the parent of process %d: %w", pid, err)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return Stat{}, fmt.Errorf("cannot read the start time of process %d: %w", pid, err)
	}
	return Stat{PID: pid, Parent: parent, State: fields[0][0], Start: start}, nil
}

// IsRunning says whether the process still runs: it may linger as a zombie until
// its parent takes notice. It looks like one, too, when its first thread has ended
// and others are still busy ending, with all its ports and children in their hands.
func (s Stat) IsRunning() bool {
	switch s.State {
	case 'X':
		return false
	case 'Z':
		threads, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(s.PID), "task"))
		return err == nil && len(threads) > 1
	}
	return true
}

// List returns the state of every process of the machine.
func List() ([]Stat, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var all []Stat
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if stat, err := ReadStat(pid); err == nil {
			all = append(all, stat)
		}
	}
	return all, nil
}

// Descendants returns pid and everything that it started, directly or not.
func Descendants(pid int) ([]Stat, error) {
	all, err := List()
	if err != nil {
		return nil, err
	}
	children := map[int][]Stat{}
	var found []Stat
	for _, stat := range all {
		children[stat.Parent] = append(children[stat.Parent], stat)
		if stat.PID == pid {
			found = append(found, stat)
		}
	}
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].PID]...)
	}
	return found, nil
}

// Program is the base name of the program that a process runs.
func Program(pid int) string {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return ""
	}
	first, _, _ := bytes.Cut(raw, []byte{0})
	name, _, _ := strings.Cut(string(first), " ")
	return filepath.Base(name)
}

// Memory is the proportional set size of a process in bytes.
func Memory(pid int) int64 {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib * 1024
		}
	}
	return 0
}

var bootID = sync.OnceValue(func() string {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
})

// MarkEnv is the environment variable that every started process carries; its
// value is the state directory of the cluster it belongs to.
const MarkEnv = "ETCD_OPERATOR_LOCAL_CLUSTER"

// Marked returns the processes that carry the mark, by the mark's value.
func Marked() (map[string][]Stat, error) {
	all, err := List()
	if err != nil {
		return nil, err
	}
	marked := map[string][]Stat{}
	for _, stat := range all {
		environ, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(stat.PID), "environ"))
		if err != nil {
			continue // gone, or a kernel thread
		}
		for entry := range bytes.SplitSeq(environ, []byte{0}) {
			if value, ok := bytes.CutPrefix(entry, []byte(MarkEnv+"=")); ok && stat.IsRunning() {
				marked[string(value)] = append(marked[string(value)], stat)
			}
		}
	}
	return marked, nil
}

// Signal sends sig to the process unless it has ended or its pid belongs
// to another program by now. Between the check and the signal the pid cannot be reused in
// practice: the kernel hands out pids in a circle.
func (s Stat) Signal(sig syscall.Signal) error {
	if now, err := ReadStat(s.PID); err != nil || now.Start != s.Start || !now.IsRunning() {
		return nil //nolint:nilerr // what cannot be read has ended
	}
	if err := syscall.Kill(s.PID, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending %v to process %d: %w", sig, s.PID, err)
	}
	return nil
}

// IsAlive says whether this very process still runs.
func (s Stat) IsAlive() bool {
	now, err := ReadStat(s.PID)
	return err == nil && now.Start == s.Start && now.IsRunning()
}
