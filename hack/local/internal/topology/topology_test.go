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
// distinct and inside the ranges that the rest of the cluster knows.
func TestNamesAndAddresses(t *testing.T) {
	seen := map[string]bool{}
	fresh := func(t *testing.T, address, within string) {
		t.Helper()
		if !netip.MustParsePrefix(within).Contains(netip.MustParseAddr(address)) || seen[address] {
			t.Errorf("bad address %s in %s", address, within)
		}
		seen[address] = true
	}
	for _, f := range Dual.All() {
		fresh(t, f.HostIP, f.LinkCIDR)
		fresh(t, f.ControlPlaneIP, f.LinkCIDR)
		fresh(t, f.APIServiceIP, f.ServiceCIDR)
		fresh(t, f.DNSServiceIP, f.ServiceCIDR)
		ranges := []netip.Prefix{netip.MustParsePrefix(f.LinkCIDR), netip.MustParsePrefix(f.ServiceCIDR)}
		for _, node := range Nodes(MaxNodes) {
			fresh(t, f.NodeIP(node), f.LinkCIDR)
			cidr := netip.MustParsePrefix(f.NodePodCIDR(node))
			if pods := netip.MustParsePrefix(f.PodCIDR); !pods.Contains(cidr.Addr()) || pods.Bits() >= cidr.Bits() || cidr.Masked() != cidr {
				t.Errorf("%s: bad pod range %s", node.Name(), cidr)
			}
			ranges = append(ranges, cidr)
		}
		for i, one := range ranges {
			for _, other := range ranges[:i] {
				if one.Overlaps(other) {
					t.Errorf("%s overlaps %s", one, other)
				}
			}
		}
		if first := netip.MustParsePrefix(f.ServiceCIDR).Addr().Next().String(); first != f.APIServiceIP {
			t.Errorf("the API's service is at %s, not at %s", first, f.APIServiceIP)
		}
	}
	for _, node := range Nodes(MaxNodes) {
		if len(node.Port()) > 15 {
			t.Errorf("%s: %q is too long for an interface", node.Name(), node.Port())
		}
		if mac, err := net.ParseMAC(node.MAC()); err != nil || mac[0]&3 != 2 || seen[node.MAC()] {
			t.Errorf("%s: %s is no locally administered unicast address of its own: %v", node.Name(), node.MAC(), err)
		}
		seen[node.MAC()] = true
	}
}

func TestFamilies(t *testing.T) {
	for name, want := range map[string]struct {
		nodes, server string
		hasIPv6       bool
	}{
		"ipv4": {"172.30.0.12", "https://172.30.0.2:6443", false},
		"dual": {"172.30.0.12,fd5e:7cd0:e01::12", "https://172.30.0.2:6443", true},
		"ipv6": {"fd5e:7cd0:e01::12", "https://[fd5e:7cd0:e01::2]:6443", true},
	} {
		f, err := ParseFamilies(name)
		if err != nil {
			t.Fatal(err)
		}
		nodes := f.List(func(f Family) string { return f.NodeIP(Node{Index: 2}) })
		if nodes != want.nodes || f.APIServer() != want.server || f.HasIPv6() != want.hasIPv6 || f.Name() != name {
			t.Errorf("%s: %s %s %v", name, nodes, f.APIServer(), f.HasIPv6())
		}
	}
	for _, name := range []string{"", "IPv4", "both"} {
		if f, err := ParseFamilies(name); err == nil {
			t.Errorf("ParseFamilies(%q) = %q, want an error", name, f)
		}
	}
	var old Families // of a cluster that an earlier version of this program made
	if old.Name() != "ipv4" || old.APIServer() != IPv4.APIServer() {
		t.Errorf("no families: %s", old.Name())
	}
}
