// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/cgroup"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/containerd"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/kubernetes"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/layout"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/network"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/process"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/topology"
)

// InitCommand is the hidden command with which this program becomes the init of a
// node.
const InitCommand = "node-init"

const bootTimeout = 2 * time.Minute

// cniBin is where Debian keeps the plugins of the pod network.
const cniBin = "/usr/lib/cni"

// ErrNotRunning says that a node has crashed or was never booted.
var ErrNotRunning = errors.New("the node does not run")

// Machine is one node, seen from outside.
type Machine struct {
	Node   topology.Node
	Layout layout.Layout
	Table  process.Table
	// Kubernetes is the release whose kubelet and kube-proxy run.
	Kubernetes kubernetes.Release
}

func (m Machine) paths() paths { return paths{layout: m.Layout, node: m.Node} }

func (m Machine) record() string { return "node-" + m.Node.Name() }

// InitPID returns the process id of the node's init.
func (m Machine) InitPID() (int, bool) {
	record, ok := m.Table.Get(m.record())
	return record.PID, ok
}

// Runtime is the node's containerd.
func (m Machine) Runtime() containerd.Client {
	return containerd.Client{Socket: m.paths().socket(), Bin: m.Layout.Current(m.Kubernetes)}
}

// Boot starts the node unless it runs. peers are all nodes of the cluster. A node
// that has no disk yet gets one from the store of images.
func (m Machine) Boot(ctx context.Context, store string, peers []topology.Node, families topology.Families) error {
	if _, running := m.InitPID(); running {
		return nil
	}
	if err := m.prepare(ctx, store, peers, families); err != nil {
		return fmt.Errorf("booting node %s: %w", m.Node.Name(), err)
	}
	_, err := m.Table.Start(process.Spec{
		Name: m.record(),
		Exe:  "/proc/self/exe",
		Args: []string{"etcd-operator-local", InitCommand, m.Node.Name(), families.Name(), m.Kubernetes.Minor()},
		Env: []string{
			layout.CacheEnv + "=" + m.Layout.Cache,
			layout.StateEnv + "=" + m.Layout.State,
		},
		Log:        m.paths().log("init"),
		Netns:      network.Netns(m.Node.Netns()),
		Namespaces: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
	})
	if err != nil {
		return fmt.Errorf("booting node %s: %w", m.Node.Name(), err)
	}
	return nil
}

// WaitRuntime waits until the container runtime of a booting node responds. The
// kubelet registers the node with the API server some time after.
func (m Machine) WaitRuntime(ctx context.Context) error {
	record, _ := m.Table.Get(m.record())
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	up := func() bool { return m.Runtime().IsReady(ctx) || !record.IsAlive() }
	if err := process.Poll(ctx, up); err != nil {
		return fmt.Errorf("the container runtime of node %s does not respond: %w; see %s", m.Node.Name(), err, m.paths().log("containerd"))
	}
	if !record.IsAlive() {
		return fmt.Errorf("node %s did not boot; the end of %s:\n%s", m.Node.Name(), record.Log, process.LogTail(record.Log, 5))
	}
	return nil
}

// prepare makes everything outside the node that it boots from, afresh: a crash or
// an interrupted run may have left the old one in any state.
func (m Machine) prepare(ctx context.Context, store string, peers []topology.Node, families topology.Families) error {
	p := m.paths()
	if err := cgroup.Remove(ctx, m.Node.Cgroup()); err != nil {
		return err
	}
	if err := cgroup.Ensure(m.Node.Cgroup()); err != nil {
		return err
	}
	if err := network.RemoveNode(ctx, m.Node); err != nil {
		return err
	}
	if err := network.EnsureNode(ctx, m.Node, families); err != nil {
		return err
	}
	if err := network.EnsureRoutes(ctx, peers, families); err != nil {
		return err
	}
	for _, dir := range []string{p.varLib(), p.varLog(), p.run(), p.layout.Logs()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.Remove(p.socket()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := containerd.CloneStore(store, filepath.Join(p.varLib(), "containerd")); err != nil {
		return err
	}
	runc, err := findRunc()
	if err != nil {
		return err
	}
	return p.writeConfigs(programDirs{runc: runc, cni: cniBin, runtime: m.Layout.Current(m.Kubernetes)}, families)
}

// EnsureImages imports the images that the store has gained since the node got its
// disk from it, and returns their references.
func (m Machine) EnsureImages(ctx context.Context, store string, archives []string) ([]string, error) {
	stamp := filepath.Join(m.paths().disk(), "store")
	if seen, err := os.ReadFile(stamp); err == nil && string(seen) == store {
		return nil, nil
	}
	have, err := m.Runtime().Images(ctx)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", m.Node.Name(), err)
	}
	var imported []string
	for _, archive := range archives {
		refs, err := m.Runtime().Import(ctx, archive, have)
		if err != nil {
			return imported, fmt.Errorf("node %s: %w", m.Node.Name(), err)
		}
		imported = append(imported, refs...)
	}
	return imported, process.WriteFile(stamp, []byte(store), 0o644)
}

func findRunc() (string, error) {
	for _, dir := range filepath.SplitList(process.Path) {
		file := filepath.Join(dir, "runc")
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	return "", errors.New("runc is not installed: run build first")
}

// Kill ends the node as a power failure would: nothing in it gets to say goodbye.
func (m Machine) Kill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := m.Table.Stop(ctx, m.record(), 0); err != nil {
		return fmt.Errorf("killing node %s: %w", m.Node.Name(), err)
	}
	return nil
}

// kubelet returns the kubelet's process.
func (m Machine) kubelet() (process.Stat, bool) {
	pid, ok := m.InitPID()
	if !ok {
		return process.Stat{}, false
	}
	all, err := process.Descendants(pid)
	if err != nil {
		return process.Stat{}, false
	}
	for _, stat := range all {
		if stat.Parent == pid && stat.IsRunning() && process.Program(stat.PID) == kubeletName {
			return stat, true
		}
	}
	return process.Stat{}, false
}

// IsKubeletRunning says whether the node's kubelet runs.
func (m Machine) IsKubeletRunning() bool {
	_, ok := m.kubelet()
	return ok
}

// StopKubelet kills the kubelet and keeps it from being restarted; pods run on.
func (m Machine) StopKubelet(ctx context.Context) error {
	return m.tell(ctx, kubeletStopSignal, func() bool { return !m.IsKubeletRunning() })
}

// StartKubelet starts the kubelet again.
func (m Machine) StartKubelet(ctx context.Context) error {
	return m.tell(ctx, kubeletStartSignal, m.IsKubeletRunning)
}

func (m Machine) tell(ctx context.Context, sig syscall.Signal, done func() bool) error {
	pid, ok := m.InitPID()
	if !ok {
		return fmt.Errorf("%s: %w: boot it with node start", m.Node.Name(), ErrNotRunning)
	}
	if err := syscall.Kill(pid, sig); err != nil {
		return fmt.Errorf("signalling the init of node %s: %w", m.Node.Name(), err)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := process.Poll(ctx, done); err != nil {
		return fmt.Errorf("the kubelet of node %s does not obey: %w; see %s", m.Node.Name(), err, m.paths().log("init"))
	}
	return nil
}

// Shell replaces this process by a command inside the node.
func (m Machine) Shell(command []string) error {
	pid, ok := m.InitPID()
	if !ok {
		return fmt.Errorf("%s: %w: boot it with node start", m.Node.Name(), ErrNotRunning)
	}
	if len(command) == 0 {
		command = []string{"/bin/sh"}
	}
	nsenter := "/usr/bin/nsenter"
	args := append([]string{nsenter, "--target", fmt.Sprint(pid), "--mount", "--pid", "--net", "--uts", "--ipc", "--"}, command...)
	return fmt.Errorf("entering node %s: %w", m.Node.Name(), syscall.Exec(nsenter, args, m.shellEnv(os.Environ())))
}

// shellEnv is the environment of a command inside the node: that of the caller, without the variables that
// the node has itself. Of two values of a variable, a program takes the first one.
func (m Machine) shellEnv(caller []string) []string {
	env := []string{
		"PATH=" + m.Layout.Current(m.Kubernetes) + ":" + process.Path,
		"CONTAINERD_ADDRESS=" + m.paths().socket(),
		"CONTAINERD_NAMESPACE=k8s.io",
		"KUBECONFIG=" + m.Layout.Kubeconfig(),
	}
	own := len(env)
	for _, variable := range caller {
		name, _, _ := strings.Cut(variable, "=")
		if !slices.ContainsFunc(env[:own], func(has string) bool { return strings.HasPrefix(has, name+"=") }) {
			env = append(env, variable)
		}
	}
	return env
}
