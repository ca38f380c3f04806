// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Prefix begins the name of everything that the cluster makes in the kernel.
const Prefix = "eol"

// Addresses. The nodes, the control plane and the machine itself share one
// bridge; the machine is a host on it like any other.
const (
	HostIP         = "172.30.0.1"
	ControlPlaneIP = "172.30.0.2"
	LinkCIDR       = "172.30.0.0/24"
	LinkPrefixLen  = 24
	PodCIDR        = "10.244.0.0/16"
	ServiceCIDR    = "10.96.0.0/16"
	// APIServiceIP is the address of the Service "kubernetes": the first of ServiceCIDR.
	APIServiceIP  = "10.96.0.1"
	DNSServiceIP  = "10.96.0.10"
	ClusterDomain = "cluster.local"
	APIPort       = 6443
)

// Links and namespaces.
const (
	ControlPlaneNetns = Prefix + "-cp"
	Bridge            = Prefix + "br0"
	HostLink          = Prefix + "0"     // the machine's end of its link to the bridge
	HostPort          = Prefix + "-host" // the bridge's end of it
)

// MaxNodes is a sanity limit, far above what one machine carries.
const MaxNodes = 50

// APIServer is the address under which everybody, pods apart, finds the API server.
func APIServer() string { return fmt.Sprintf("https://%s:%d", ControlPlaneIP, APIPort) }

// MAC returns the hardware address of the link that has an address on the bridge.
// All are fixed: a neighbour that remembers another address for the same IP sends
// into the void for up to a minute. A bridge in particular otherwise takes the
// lowest address of its ports, and so changes its own when a node comes or goes.
func MAC(ip string) string {
	a := netip.MustParseAddr(ip).As4()
	return fmt.Sprintf("02:00:%02x:%02x:%02x:%02x", a[0], a[1], a[2], a[3])
}

// Node is one node of the cluster; nodes are numbered from 1.
type Node struct{ Index int }

// Nodes returns the first count nodes.
func Nodes(count int) []Node {
	nodes := make([]Node, 0, count)
	for i := 1; i <= count; i++ {
		nodes = append(nodes, Node{Index: i})
	}
	return nodes
}

// ParseNode returns the node called name ("n1", "n2", ...).
func ParseNode(name string) (Node, error) {
	digits, ok := strings.CutPrefix(name, "n")
	index, err := strconv.Atoi(digits)
	if !ok || err != nil || index < 1 || index > MaxNodes || digits != strconv.Itoa(index) {
		return Node{}, fmt.Errorf("%q is not the name of a node: nodes are called n1, n2, and so on", name)
	}
	return Node{Index: index}, nil
}

// Name is the name of the node in Kubernetes, and its host name.
func (n Node) Name() string { return fmt.Sprintf("n%d", n.Index) }

// IP is the address of the node on the bridge.
func (n Node) IP() string { return fmt.Sprintf("172.30.0.%d", 10+n.Index) }

// PodCIDR is the range from which the node's pods get their addresses.
func (n Node) PodCIDR() string { return fmt.Sprintf("10.244.%d.0/24", n.Index) }

// Netns is the name of the node's network namespace.
func (n Node) Netns() string { return Prefix + "-" + n.Name() }

// Port is the bridge's end of the node's link; the node's end is its eth0.
func (n Node) Port() string { return Prefix + "-" + n.Name() }

// Cgroup is the node's cgroup, at the root of every hierarchy.
func (n Node) Cgroup() string { return Prefix + "-" + n.Name() }
