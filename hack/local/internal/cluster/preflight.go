// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/cgroup"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/process"
)

// CheckMachine returns an error that says what keeps this machine from running a
// cluster at all.
func CheckMachine() error {
	if os.Geteuid() != 0 {
		return errors.New("the local cluster makes network namespaces and mounts: run this as root")
	}
	return nil
}

// modules are the kernel modules that are loaded if they are modules at all; where
// they are built in, or missing, modprobe fails and what needs them tells.
var modules = []string{"overlay", "br_netfilter", "veth", "bridge", "nf_tables", "nf_conntrack"}

func checkKernel(ctx context.Context) error {
	for _, namespace := range []string{"net", "mnt", "pid", "uts", "ipc"} {
		if _, err := os.Stat(filepath.Join("/proc/self/ns", namespace)); err != nil {
			return fmt.Errorf("the kernel has no %s namespaces: %w", namespace, err)
		}
	}
	if modprobe, err := exec.LookPath("modprobe"); err == nil {
		_ = exec.CommandContext(ctx, modprobe, append([]string{"--all", "--quiet"}, modules...)...).Run()
	}
	if !hasFileSystem("overlay") {
		return errors.New("the kernel has no overlay file system (CONFIG_OVERLAY_FS): containers cannot be made")
	}
	if _, err := os.Stat("/proc/sys/net/bridge/bridge-nf-call-iptables"); err != nil {
		return errors.New("the kernel has no bridge filtering (CONFIG_BRIDGE_NETFILTER, module br_netfilter): Services would not work")
	}
	return cgroup.Check()
}

func hasFileSystem(name string) bool {
	file, err := os.Open("/proc/filesystems")
	if err != nil {
		return false
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 0 && fields[len(fields)-1] == name {
			return true
		}
	}
	return false
}

// checkOthers makes sure that no cluster with another state directory is up: it
// would have the same names in the kernel.
func (c *Cluster) checkOthers() error {
	marked, err := process.Marked()
	if err != nil {
		return err
	}
	for state := range marked {
		if state != c.Layout.State {
			return fmt.Errorf("a cluster with the state directory %s is up, and there can be only one: take it down with ETCD_OPERATOR_STATE=%s", state, state)
		}
	}
	return nil
}
