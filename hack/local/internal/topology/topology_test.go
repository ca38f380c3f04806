// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"net"
	"net/netip"
	"testing"
)

func TestParseNode(t *testing.T) {
	for _, name := range []string{"n1", "n7", "n50"} {
		node, err := ParseNode(name)
		if err != nil || node.Name() != name {
			t.Errorf("ParseNode(%q) = %v, %v", name, node, err)
		}
	}
	for _, name := range []string{"", "n", "1", "n0", "n01", "n51", "n-1", "m1", "n1x"} {
		if node, err := ParseNode(name); err == nil {
			t.Errorf("ParseNode(%q) = %v, want an error", name, node)
		}
	}
}

// Names must fit the kernel's limit for interfaces, and addresses must be
// distinct and inside the ranges that the rest of the cluster is told about.
func TestNamesAndAddresses(t *testing.T) {
	links := netip.MustParsePrefix(LinkCIDR)
	pods := netip.MustParsePrefix(PodCIDR)
	seen := map[string]bool{HostIP: true, ControlPlaneIP: true}
	for _, node := range Nodes(MaxNodes) {
		if len(node.Port()) > 15 {
			t.Errorf("%s: %q is too long for an interface", node.Name(), node.Port())
		}
		if !links.Contains(netip.MustParseAddr(node.IP())) || seen[node.IP()] {
			t.Errorf("%s: bad address %s", node.Name(), node.IP())
		}
		seen[node.IP()] = true
		if mac, err := net.ParseMAC(MAC(node.IP())); err != nil || mac[0]&3 != 2 {
			t.Errorf("%s: %s is no locally administered unicast address: %v", node.Name(), MAC(node.IP()), err)
		}
		if cidr := netip.MustParsePrefix(node.PodCIDR()); !pods.Overlaps(cidr) || cidr.Masked() != cidr {
			t.Errorf("%s: bad pod range %s", node.Name(), cidr)
		}
	}
}
