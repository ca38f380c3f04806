// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/build"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/controlplane"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/kubernetes"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/layout"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/node"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/process"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/progress"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/topology"
)

// Cluster is the one local cluster of a state directory.
type Cluster struct {
	Layout   layout.Layout
	Progress *progress.Printer
}

// ErrDown says that there is no cluster.
var ErrDown = errors.New("the cluster is not up: bring it up with the up command")

// settings are kept for as long as the cluster exists.
type settings struct {
	Nodes             int  `json:"nodes"`
	Audit             bool `json:"audit"`
	TolerationSeconds int  `json:"tolerationSeconds"`
	// Families are fixed: everything in a cluster has its addresses.
	Families topology.Families `json:"families,omitempty"`
	// Kubernetes is fixed: what is stored may be unreadable for an older release.
	Kubernetes kubernetes.Release `json:"kubernetes"`
}

func (s settings) options() controlplane.Options {
	return controlplane.Options{Audit: s.Audit, TolerationSeconds: s.TolerationSeconds, Families: s.Families, Kubernetes: s.Kubernetes}
}

// load returns the settings of the existing cluster, or ErrDown.
func (c *Cluster) load() (settings, error) {
	// Settings without a release are those of a time when there was only the newest.
	s := settings{Kubernetes: kubernetes.Newest()}
	raw, err := os.ReadFile(c.Layout.Settings())
	if errors.Is(err, fs.ErrNotExist) {
		return s, ErrDown
	}
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		return s, fmt.Errorf("reading the cluster's settings: %w; take it down and up again", err)
	}
	return s, nil
}

func (c *Cluster) save(s settings) error {
	raw, err := json.Marshal(s)
	if err == nil {
		err = process.WriteFile(c.Layout.Settings(), raw, 0o644)
	}
	if err != nil {
		return fmt.Errorf("saving the cluster's settings: %w", err)
	}
	return nil
}

func (c *Cluster) table() process.Table {
	return process.Table{Dir: filepath.Join(c.Layout.Run(), "processes"), Mark: c.Layout.State}
}

func (c *Cluster) machine(n topology.Node, release kubernetes.Release) node.Machine {
	return node.Machine{Node: n, Layout: c.Layout, Table: c.table(), Kubernetes: release}
}

// builder builds for a cluster of the release.
func (c *Cluster) builder(release kubernetes.Release) *build.Builder {
	return &build.Builder{Layout: c.Layout, Progress: c.Progress, Kubernetes: release}
}

// Kubernetes returns the release of the existing cluster, or the newest if there is no
// cluster.
func (c *Cluster) Kubernetes() (kubernetes.Release, error) {
	s, err := c.load()
	if errors.Is(err, ErrDown) {
		return kubernetes.Newest(), nil
	}
	return s.Kubernetes, err
}

// lock keeps two terminals from changing the cluster at once. The lock lies in the
// state directory, which the holder may remove: a program that waited for a lock file that
// no longer exists starts over.
func (c *Cluster) lock(ctx context.Context) (unlock func(), err error) {
	defer c.Progress.Working("waiting for another command that is changing the cluster")()
	for {
		if err := c.checkState(); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(c.Layout.State, 0o755); err != nil {
			return nil, fmt.Errorf("making the state directory: %w", err)
		}
		file, err := os.OpenFile(c.Layout.Lock(), os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o644)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed between the two calls
		}
		if err != nil {
			return nil, fmt.Errorf("locking the cluster: %w", err)
		}
		if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			if isSameFile(file, c.Layout.Lock()) {
				return func() { file.Close() }, nil
			}
			file.Close()
			continue
		}
		file.Close()
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for another command that is changing the cluster: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// checkState rejects a state directory that holds something else than a cluster:
// down would delete it.
func (c *Cluster) checkState() error {
	entries, err := os.ReadDir(c.Layout.State)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && len(entries) == 0) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking at the state directory: %w", err)
	}
	ours := filepath.Base(c.Layout.Lock())
	if !slices.ContainsFunc(entries, func(entry fs.DirEntry) bool { return entry.Name() == ours }) {
		return fmt.Errorf("%s holds something that is no cluster: choose another %s, because down removes it", c.Layout.State, layout.StateEnv)
	}
	return nil
}

func isSameFile(open *os.File, path string) bool {
	one, err := open.Stat()
	if err != nil {
		return false
	}
	other, err := os.Stat(path)
	return err == nil && os.SameFile(one, other)
}
