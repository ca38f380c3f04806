// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/process"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/topology"
)

const root = "/sys/fs/cgroup"

// needed are the controllers without which the kubelet does not run pods.
var needed = []string{"cpu", "cpuset", "memory", "pids"}

// Version2 says whether the machine has nothing but the single hierarchy.
func Version2() bool { return fsType(root) == unix.CGROUP2_SUPER_MAGIC }

func fsType(dir string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0
	}
	return st.Type
}

// hierarchies returns the mount points of all hierarchies.
func hierarchies() ([]string, error) {
	if Version2() {
		return []string{root}, nil
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("looking for cgroups: %w", err)
	}
	var dirs []string
	for _, entry := range entries {
		// Names such as cpu may be links to cpu,cpuacct: take each directory once.
		dir := filepath.Join(root, entry.Name())
		switch fsType(dir) {
		case unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC:
			if entry.IsDir() {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs, nil
}

// Check returns an error that names the controllers which the machine lacks.
func Check() error {
	var have []string
	if Version2() {
		raw, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
		if err != nil {
			return fmt.Errorf("reading the cgroup controllers: %w", err)
		}
		have = strings.Fields(string(raw))
	} else {
		dirs, err := hierarchies()
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			have = append(have, strings.Split(filepath.Base(dir), ",")...)
		}
	}
	var missing []string
	for _, controller := range needed {
		if !slices.Contains(have, controller) {
			missing = append(missing, controller)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("no cgroup controller %s below %s: the kubelet cannot run pods without", strings.Join(missing, ", "), root)
	}
	return nil
}

// Ensure makes a cgroup at the root of every hierarchy.
func Ensure(name string) error {
	dirs, err := hierarchies()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		group := filepath.Join(dir, name)
		if err := os.MkdirAll(group, 0o755); err != nil {
			return fmt.Errorf("making the cgroup %s: %w", group, err)
		}
		controllers := strings.Split(filepath.Base(dir), ",")
		switch {
		case Version2():
			err = delegate(dir, group)
		case slices.Contains(controllers, "cpuset"):
			err = fillCPUSet(dir, group)
		case slices.Contains(controllers, "cpu"):
			err = setShares(group)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fillCPUSet allows the parent's processors and memory nodes: a new cpuset of
// version 1 is empty, and nothing can run in it or below it.
func fillCPUSet(parent, group string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, file))
		if err == nil {
			err = os.WriteFile(filepath.Join(group, file), value, 0o644)
		}
		if err != nil {
			return fmt.Errorf("filling the cpuset %s: %w", group, err)
		}
	}
	return nil
}

// setShares gives the group the weight that a kubelet gives to all its pods
// together. With the default, the pods of a node would share the time of a single
// process of the machine, and starve while a compiler runs beside them. Version 2
// does not need this: there the machine's processes are in groups as well.
func setShares(group string) error {
	file := filepath.Join(group, "cpu.shares")
	if err := os.WriteFile(file, []byte(strconv.Itoa(1024*runtime.NumCPU())), 0o644); err != nil {
		return fmt.Errorf("setting the share of processor time: %w", err)
	}
	return nil
}

// delegate lets the children of the root and of the group use all controllers.
func delegate(parent, group string) error {
	for _, dir := range []string{parent, group} {
		raw, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
		if err != nil {
			return fmt.Errorf("reading the controllers of %s: %w", dir, err)
		}
		for _, controller := range strings.Fields(string(raw)) {
			err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
			if err != nil && slices.Contains(needed, controller) {
				return fmt.Errorf("enabling the cgroup controller %s in %s: %w", controller, dir, err)
			}
		}
	}
	return nil
}

// Remove removes a cgroup with everything below it, in every hierarchy. Processes
// that are still in it are killed: only the cluster's pods can be.
func Remove(ctx context.Context, name string) error {
	dirs, err := hierarchies()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for _, dir := range dirs {
		group := filepath.Join(dir, name)
		var last error
		gone := func() bool { // busy for a moment after its last process has died
			last = removeTree(group)
			return last == nil
		}
		if gone() {
			continue
		}
		if err := kill(ctx, group); err != nil {
			return fmt.Errorf("ending what runs in the cgroup %s: %w", group, err)
		}
		if err := process.Poll(ctx, gone); err != nil {
			return fmt.Errorf("removing the cgroup %s: %w", group, last)
		}
	}
	return nil
}

func removeTree(group string) error {
	var dirs []string
	err := filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, dir := range slices.Backward(dirs) { // children first
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}

func kill(ctx context.Context, group string) error {
	var stats []process.Stat
	err := filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "cgroup.procs" {
			return nil //nolint:nilerr // a deleted group has no processes
		}
		raw, _ := os.ReadFile(path)
		for line := range strings.Lines(string(raw)) {
			pid, _ := strconv.Atoi(strings.TrimSpace(line))
			if stat, err := process.ReadStat(pid); err == nil && pid > 0 {
				stats = append(stats, stat)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return process.End(ctx, stats, 0)
}

// List returns the cgroups of the cluster that exist.
func List() ([]string, error) {
	dirs, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, dir := range dirs {
		groups, err := filepath.Glob(filepath.Join(dir, topology.Prefix+"-*"))
		if err != nil {
			return nil, err
		}
		found = append(found, groups...)
	}
	return found, nil
}
