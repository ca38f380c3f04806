// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/cgroup"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/network"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/process"
)

const downTimeout = 2 * time.Minute

// Down stops everything and removes it: processes, mounts, cgroups, the network
// and the state directory. It does so from whatever state it finds.
func (c *Cluster) Down(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, downTimeout)
	defer cancel()
	if err := c.checkOthers(); err != nil {
		return err
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.endAll(ctx); err != nil {
		return err
	}
	groups, err := cgroupNames()
	if err != nil {
		return err
	}
	for _, group := range groups {
		if err := cgroup.Remove(ctx, group); err != nil {
			return err
		}
	}
	if err := network.RemoveAll(ctx); err != nil {
		return err
	}
	// Again, for what an interrupted run was only about to start a moment ago.
	if err := c.endStrays(ctx); err != nil {
		return err
	}
	mounts, err := c.mounts()
	if err != nil {
		return err
	}
	for _, mount := range slices.Backward(mounts) {
		if err := unix.Unmount(mount, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmounting %s: %w", mount, err)
		}
	}
	if err := c.removeState(); err != nil {
		return fmt.Errorf("removing the state directory: %w", err)
	}
	c.Progress.Step("the cluster is down")
	return nil
}

// removeState removes the lock last: it keeps others out until all no longer exists, and
// marks the directory as a cluster's should this be interrupted.
func (c *Cluster) removeState() error {
	entries, err := os.ReadDir(c.Layout.State)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(c.Layout.State, entry.Name())
		if path == c.Layout.Lock() {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	if err := os.Remove(c.Layout.Lock()); err != nil {
		return err
	}
	// A program that waits may have made a lock of its own there by now: then the directory is
	// that command's.
	if err := os.Remove(c.Layout.State); err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// endAll kills the nodes first, so that nothing of them reacts to the end of the
// control plane. All are killed: nothing is worth a graceful end, since their
// state is deleted.
func (c *Cluster) endAll(ctx context.Context) error {
	names, err := c.table().Names()
	if err != nil {
		return err
	}
	isNode := func(name string) int {
		if strings.HasPrefix(name, "node-") {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(names, func(a, b string) int { return isNode(a) - isNode(b) })
	for _, name := range names {
		if err := c.table().Stop(ctx, name, 0); err != nil {
			return err
		}
	}
	return c.endStrays(ctx)
}

func cgroupNames() ([]string, error) {
	dirs, err := cgroup.List()
	var names []string
	for _, dir := range dirs {
		if name := filepath.Base(dir); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, err
}

// mounts returns the mount points below the state directory, in the order in which
// they were mounted.
func (c *Cluster) mounts() ([]string, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("listing mounts: %w", err)
	}
	defer file.Close()
	var found []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 4 && strings.HasPrefix(fields[4], c.Layout.State+"/") {
			found = append(found, fields[4])
		}
	}
	return found, lines.Err()
}

// ErrNotClean says that something of the cluster is left.
var ErrNotClean = errors.New("something of the cluster is left: take it down with the down command")

// CheckClean lists what there is of a cluster, one thing a line, and returns
// ErrNotClean if there is anything.
func (c *Cluster) CheckClean(ctx context.Context) ([]string, error) {
	var found []string
	marked, err := process.Marked()
	if err != nil {
		return nil, err
	}
	for state, stats := range marked {
		for _, stat := range stats {
			found = append(found, fmt.Sprintf("process %d %s (of the cluster in %s)", stat.PID, process.Program(stat.PID), state))
		}
	}
	for kind, list := range map[string]func() ([]string, error){
		"network namespace": network.Namespaces,
		"link":              func() ([]string, error) { return network.Links(ctx) },
		"cgroup":            cgroup.List,
		"mount":             c.mounts,
	} {
		names, err := list()
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			found = append(found, kind+" "+name)
		}
	}
	if _, err := os.Stat(c.Layout.State); err == nil {
		found = append(found, "directory "+c.Layout.State)
	}
	slices.Sort(found)
	if len(found) > 0 {
		return found, ErrNotClean
	}
	return nil, nil
}
