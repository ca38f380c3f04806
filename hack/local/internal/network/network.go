// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/process"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/topology"
)

const netnsDir = "/run/netns" // where the ip command keeps them

// Netns is the file of a named network namespace.
func Netns(name string) string { return filepath.Join(netnsDir, name) }

// ip runs one ip command.
func ip(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "ip", args...)
	cmd.Env = append(os.Environ(), "PATH="+process.Path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// batch runs several ip commands in one namespace ("" is the machine's own).
func batch(ctx context.Context, netns string, commands ...string) error {
	args := []string{"-batch", "-"}
	if netns != "" {
		args = append([]string{"-n", netns}, args...)
	}
	cmd := exec.CommandContext(ctx, "ip", args...)
	cmd.Env = append(os.Environ(), "PATH="+process.Path)
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("configuring the network (namespace %q): %w: %s", netns, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// isAlive says whether a namespace's file is really a namespace: after a restart of
// the machine or an interrupted run it may be an empty file.
func isAlive(name string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(Netns(name), &fs) == nil && fs.Type == unix.NSFS_MAGIC
}

func ensureNetns(ctx context.Context, name string) error {
	if isAlive(name) {
		return nil
	}
	if err := os.Remove(Netns(name)); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("removing a stale network namespace: %w", err)
	}
	if _, err := ip(ctx, "netns", "add", name); err != nil {
		return fmt.Errorf("making a network namespace (does the kernel have CONFIG_NET_NS?): %w", err)
	}
	return nil
}

// links returns the names of the links in a namespace.
func links(ctx context.Context, netns string) (map[string]bool, error) {
	args := []string{"-json", "link", "show"}
	if netns != "" {
		args = append([]string{"-n", netns}, args...)
	}
	out, err := ip(ctx, args...)
	if err != nil {
		return nil, err
	}
	var list []struct {
		Name  string   `json:"ifname"`
		Flags []string `json:"flags"`
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, fmt.Errorf("reading the list of links: %w", err)
	}
	names := map[string]bool{}
	for _, link := range list {
		names[link.Name] = false
		for _, flag := range link.Flags {
			if flag == "UP" {
				names[link.Name] = true
			}
		}
	}
	return names, nil
}

// EnsureControlPlane makes the control plane's namespace with the bridge in it,
// and the machine's link to the bridge.
func EnsureControlPlane(ctx context.Context, families topology.Families) error {
	cp := topology.ControlPlaneNetns
	if err := ensureNetns(ctx, cp); err != nil {
		return err
	}
	inside, err := links(ctx, cp)
	if err != nil {
		return err
	}
	if _, ok := inside[topology.Bridge]; !ok {
		if err := batch(ctx, cp, fmt.Sprintf("link add %s address %s type bridge", topology.Bridge, topology.MAC(topology.V4.ControlPlaneIP))); err != nil {
			return fmt.Errorf("making a bridge (does the kernel have CONFIG_BRIDGE?): %w", err)
		}
	}
	if _, ok := inside[topology.HostPort]; !ok {
		// The machine's end may be left from a namespace that is just being deleted.
		_, _ = ip(ctx, "link", "del", topology.HostLink)
		_, err := ip(ctx, "link", "add", topology.HostLink, "address", topology.MAC(topology.V4.HostIP),
			"type", "veth", "peer", "name", topology.HostPort, "netns", cp)
		if err != nil {
			return fmt.Errorf("making a pair of links (does the kernel have CONFIG_VETH?): %w", err)
		}
	}
	inCP, here, routes := []string{"link set lo up"}, []string{}, []string{}
	for _, f := range families.All() {
		inCP = append(inCP, address(f, f.ControlPlaneIP, topology.Bridge))
		here = append(here, address(f, f.HostIP, topology.HostLink))
		routes = append(routes, defaultRoute(f))
	}
	inCP = append(inCP,
		fmt.Sprintf("link set %s up", topology.Bridge),
		fmt.Sprintf("link set %s master %s up", topology.HostPort, topology.Bridge),
	)
	if err := batch(ctx, cp, inCP...); err != nil {
		return err
	}
	if err := batch(ctx, "", append(here, fmt.Sprintf("link set %s up", topology.HostLink))...); err != nil {
		return err
	}
	return batch(ctx, cp, routes...)
}

// address is the command that gives a link an address.
func address(f topology.Family, ip, link string) string {
	return strings.TrimSpace(fmt.Sprintf("addr replace %s/%d dev %s %s", ip, f.LinkPrefixLen, link, f.AddressFlags))
}

// defaultRoute is the command that makes the machine the way to everything else.
func defaultRoute(f topology.Family) string {
	return fmt.Sprintf("route replace %s via %s", f.Everything, f.HostIP)
}

// EnsureNode makes a node's namespace and its link to the bridge.
func EnsureNode(ctx context.Context, node topology.Node, families topology.Families) error {
	if err := ensureNetns(ctx, node.Netns()); err != nil {
		return err
	}
	ports, err := links(ctx, topology.ControlPlaneNetns)
	if err != nil {
		return err
	}
	inside, err := links(ctx, node.Netns())
	if err != nil {
		return err
	}
	_, hasPort := ports[node.Port()]
	_, hasLink := inside["eth0"]
	if !hasPort || !hasLink {
		if hasPort { // its other end was in a namespace that no longer exists
			_, _ = ip(ctx, "-n", topology.ControlPlaneNetns, "link", "del", node.Port())
		}
		if err := batch(ctx, topology.ControlPlaneNetns,
			fmt.Sprintf("link add %s type veth peer name eth0 address %s netns %s", node.Port(), node.MAC(), node.Netns()),
			fmt.Sprintf("link set %s master %s up", node.Port(), topology.Bridge),
		); err != nil {
			return err
		}
	}
	addresses, routes := []string{"link set lo up"}, []string{}
	for _, f := range families.All() {
		addresses = append(addresses, address(f, f.NodeIP(node), "eth0"))
		routes = append(routes, defaultRoute(f))
	}
	addresses = append(addresses, "link set eth0 up")
	return batch(ctx, node.Netns(), append(addresses, routes...)...)
}

// EnsureRoutes tells the machine, the control plane and every node where the pods
// of the nodes are.
func EnsureRoutes(ctx context.Context, nodes []topology.Node, families topology.Families) error {
	for _, netns := range append([]string{"", topology.ControlPlaneNetns}, netnsOf(nodes)...) {
		var routes []string
		for _, node := range nodes {
			if netns == node.Netns() {
				continue
			}
			for _, f := range families.All() {
				routes = append(routes, fmt.Sprintf("route replace %s via %s", f.NodePodCIDR(node), f.NodeIP(node)))
			}
		}
		if len(routes) == 0 {
			continue
		}
		if err := batch(ctx, netns, routes...); err != nil {
			return err
		}
	}
	return nil
}

func netnsOf(nodes []topology.Node) []string {
	var names []string
	for _, node := range nodes {
		if isAlive(node.Netns()) {
			names = append(names, node.Netns())
		}
	}
	return names
}

// RemoveNode removes a node's namespace and links, and with them whatever the
// node's programs configured in it. Its processes must have ended before.
func RemoveNode(ctx context.Context, node topology.Node) error {
	if isAlive(topology.ControlPlaneNetns) {
		_, _ = ip(ctx, "-n", topology.ControlPlaneNetns, "link", "del", node.Port())
	}
	return removeNetns(ctx, node.Netns())
}

func removeNetns(ctx context.Context, name string) error {
	if _, err := os.Lstat(Netns(name)); os.IsNotExist(err) {
		return nil
	}
	if isAlive(name) {
		_, err := ip(ctx, "netns", "del", name)
		return err
	}
	return os.Remove(Netns(name))
}

// RemoveAll removes every namespace and link of the cluster.
func RemoveAll(ctx context.Context) error {
	names, err := Namespaces()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := removeNetns(ctx, name); err != nil {
			return err
		}
	}
	// The kernel deletes namespaces behind our back and the link with them. Deleting
	// the link here makes it certain that it no longer exists when we return.
	if here, err := links(ctx, ""); err != nil {
		return err
	} else if _, ok := here[topology.HostLink]; ok {
		_, _ = ip(ctx, "link", "del", topology.HostLink)
	}
	return nil
}

// Namespaces returns the names of the cluster's network namespaces that exist.
func Namespaces() ([]string, error) {
	files, err := filepath.Glob(Netns(topology.Prefix + "-*"))
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	return files, err
}

// Links returns the cluster's links on the machine itself.
func Links(ctx context.Context) ([]string, error) {
	here, err := links(ctx, "")
	var ours []string
	for name := range here {
		if strings.HasPrefix(name, topology.Prefix) {
			ours = append(ours, name)
		}
	}
	return ours, err
}

// SetConnected cuts a node off the network, or puts it back.
func SetConnected(ctx context.Context, node topology.Node, connected bool) error {
	state := "down"
	if connected {
		state = "up"
	}
	_, err := ip(ctx, "-n", topology.ControlPlaneNetns, "link", "set", node.Port(), state)
	return err
}

// Connected says whether a node is on the network.
func Connected(ctx context.Context, node topology.Node) (bool, error) {
	ports, err := links(ctx, topology.ControlPlaneNetns)
	return ports[node.Port()], err
}
