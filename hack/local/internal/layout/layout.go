// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/kubernetes"
)

// Environment variables that move the two directories.
const (
	CacheEnv = "ETCD_OPERATOR_CACHE"
	StateEnv = "ETCD_OPERATOR_STATE"
)

const defaultState = "/var/lib/etcd-operator-local"

// maxStateLen keeps the path of containerd's socket, which lies in the state
// directory, within the 108 bytes that the kernel allows (and containerd appends
// ".ttrpc" to one of them).
const maxStateLen = 70

// Layout is the pair of directories that everything else lies in.
type Layout struct {
	Cache string
	State string
}

// FromEnvironment returns the directories of this run.
func FromEnvironment() (Layout, error) {
	l := Layout{Cache: os.Getenv(CacheEnv), State: os.Getenv(StateEnv)}
	if l.Cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return l, fmt.Errorf("finding the cache directory: %w; set %s", err, CacheEnv)
		}
		l.Cache = filepath.Join(home, ".cache", "etcd-operator")
	}
	if l.State == "" {
		l.State = defaultState
	}
	for env, dir := range map[string]*string{CacheEnv: &l.Cache, StateEnv: &l.State} {
		if !filepath.IsAbs(*dir) {
			return l, fmt.Errorf("%s=%s must be an absolute path", env, *dir)
		}
		*dir = filepath.Clean(*dir)
	}
	if len(l.State) > maxStateLen {
		return l, fmt.Errorf("%s=%s is too long: sockets in it need a path of at most %d characters", StateEnv, l.State, maxStateLen)
	}
	if l.State == "/" || strings.HasPrefix(l.Cache+"/", l.State+"/") {
		return l, fmt.Errorf("%s=%s is removed by down: it must be a directory of its own, without the cache in it", StateEnv, l.State)
	}
	return l, nil
}

// Bin is the directory of one built component, such as "etcd-3.6.16".
func (l Layout) Bin(component string) string { return filepath.Join(l.Cache, "bin", component) }

// Current is the flat directory with a link to every program of a cluster of the release.
// Each minor version of Kubernetes has its own: what runs is never linked again.
func (l Layout) Current(release kubernetes.Release) string {
	return l.Bin("current-" + release.Minor())
}

// Images is the directory of the built images.
func (l Layout) Images() string { return filepath.Join(l.Cache, "images") }

// Debian is the directory of unpacked Debian packages.
func (l Layout) Debian() string { return filepath.Join(l.Cache, "debian") }

// NodeStores is the directory of containerd stores with the images already in them.
func (l Layout) NodeStores() string { return filepath.Join(l.Cache, "node-stores") }

// PKI is the directory of keys, certificates and kubeconfigs.
func (l Layout) PKI() string { return filepath.Join(l.State, "pki") }

// Config is the directory of generated configuration files.
func (l Layout) Config() string { return filepath.Join(l.State, "config") }

// Run is the directory of process records and sockets.
func (l Layout) Run() string { return filepath.Join(l.State, "run") }

// Data is the directory of etcd's data and of the nodes' disks.
func (l Layout) Data() string { return filepath.Join(l.State, "data") }

// Logs is the directory of all log files.
func (l Layout) Logs() string { return filepath.Join(l.State, "logs") }

// Kubeconfig is the administrator's kubeconfig.
func (l Layout) Kubeconfig() string { return filepath.Join(l.PKI(), "admin.kubeconfig") }

// Settings is the record of how the running cluster was requested.
func (l Layout) Settings() string { return filepath.Join(l.State, "cluster.json") }

// Lock is the file whose lock serializes the commands that change the cluster.
func (l Layout) Lock() string { return filepath.Join(l.State, "lock") }
