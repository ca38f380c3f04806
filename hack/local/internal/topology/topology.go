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

// What does not depend on the family of addresses.
const (
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

// MAC returns the hardware address of the link that has, or would have, an address of
// IPv4 on the bridge.
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

// MAC is the hardware address of the node's link.
func (n Node) MAC() string { return MAC(V4.NodeIP(n)) }

// Netns is the name of the node's network namespace.
func (n Node) Netns() string { return Prefix + "-" + n.Name() }

// Port is the bridge's end of the node's link; the node's end is its eth0.
func (n Node) Port() string { return Prefix + "-" + n.Name() }

// Cgroup is the node's cgroup, at the root of every hierarchy.
func (n Node) Cgroup() string { return Prefix + "-" + n.Name() }
