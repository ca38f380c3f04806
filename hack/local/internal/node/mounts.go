// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/topology"
)

// Directories inside a node.
const (
	containerdRoot = "/var/lib/containerd"
	cniLeases      = "/run/cni" // gone with a boot, like the pods that hold the leases
)

// setupMounts gives the node its own /proc, /sys, /run, /var/lib and /var/log. It
// runs in the node's init, in a fresh mount namespace.
func (p paths) setupMounts() error {
	// Nothing mounted from here on may show up on the machine.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separating the mounts from the machine's: %w", err)
	}
	// These may lie below what is covered next; an open directory stays reachable.
	keep := []string{p.layout.State, p.layout.Cache, "/sys/fs/cgroup"}
	open := map[string]int{}
	for _, dir := range append([]string{p.varLib(), p.varLog()}, keep...) {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("opening %s: %w", dir, err)
		}
		defer unix.Close(fd)
		open[dir] = fd
	}
	bind := func(dir, target string) error {
		if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", open[dir]), target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("mounting %s on %s: %w", dir, target, err)
		}
		return nil
	}
	for _, fs := range []struct{ kind, target, options string }{
		{"proc", "/proc", ""},
		{"sysfs", "/sys", ""}, // shows the links of the node's network
		{"tmpfs", "/run", "mode=755"},
	} {
		if err := unix.Mount(fs.kind, fs.target, fs.kind, 0, fs.options); err != nil {
			return fmt.Errorf("mounting %s: %w", fs.target, err)
		}
	}
	if err := bind(p.varLib(), "/var/lib"); err != nil {
		return err
	}
	if err := bind(p.varLog(), "/var/log"); err != nil {
		return err
	}
	for _, dir := range keep {
		if !isCovered(dir) {
			continue
		}
		if !strings.HasPrefix(dir, "/sys/") {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
		if err := bind(dir, dir); err != nil {
			return err
		}
	}
	if err := p.hideNameServers(); err != nil {
		return err
	}
	// The kubelet passes mounts on to pods, which takes shared ones.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("sharing the mounts with pods: %w", err)
	}
	return p.makeDirs()
}

// hideNameServers makes lookups by the node's programs fail at once. They cannot
// reach the machine's name servers: pulling an image that is not there would take
// ten seconds to fail, every time.
func (p paths) hideNameServers() error {
	const system = "/etc/resolv.conf"
	if _, err := os.Stat(system); errors.Is(err, fs.ErrNotExist) {
		return nil // a link into a covered directory: it is hidden already
	} else if err != nil {
		return fmt.Errorf("looking for %s: %w", system, err)
	}
	if err := unix.Mount(p.config(resolvConf), system, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("hiding %s: %w", system, err)
	}
	return nil
}

func isCovered(dir string) bool {
	for _, cover := range []string{"/sys", "/run", "/var/lib", "/var/log"} {
		if dir == cover || strings.HasPrefix(dir, cover+"/") {
			return true
		}
	}
	return false
}

// makeDirs makes what programs expect, and removes what a reboot would have.
func (p paths) makeDirs() error {
	if err := os.RemoveAll("/var/lib/cni"); err != nil {
		return err
	}
	for _, dir := range []string{"/run/lock", "/run/netns", cniLeases, "/var/lib/kubelet", "/var/lib/cni", "/var/log/pods", "/var/log/containers"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("preparing the node's directories: %w", err)
		}
	}
	return nil
}

// setupKernel sets the kernel parameters of the node's network namespace.
func setupKernel(families topology.Families) error {
	parameters := map[string]string{
		"net/ipv4/ip_forward":                 "1",
		"net/ipv4/conf/all/rp_filter":         "0",
		"net/ipv4/conf/default/rp_filter":     "0",
		"net/bridge/bridge-nf-call-iptables":  "1", // or pods of one node do not get responses through a Service
		"net/bridge/bridge-nf-call-ip6tables": "1",
	}
	if families.HasIPv6() {
		parameters["net/ipv6/conf/all/forwarding"] = "1"
		parameters["net/ipv6/conf/default/forwarding"] = "1"
		// No other machine is on these links: addresses need not be tried for a second.
		parameters["net/ipv6/conf/default/accept_dad"] = "0"
	}
	for key, value := range parameters {
		if err := os.WriteFile(filepath.Join("/proc/sys", key), []byte(value), 0o644); err != nil {
			return fmt.Errorf("setting the kernel parameter %s (does the kernel have br_netfilter?): %w", key, err)
		}
	}
	return nil
}
