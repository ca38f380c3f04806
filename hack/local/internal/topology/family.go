// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Family is the addresses that the cluster has in one address family. The nodes, the
// control plane and the machine itself share one bridge; the machine is a host on it
// like any other.
type Family struct {
	HostIP         string
	ControlPlaneIP string
	LinkCIDR       string
	LinkPrefixLen  int
	// AddressFlags go with every address of a link.
	AddressFlags string
	// Everything is the destination of the default route.
	Everything  string
	PodCIDR     string
	ServiceCIDR string
	// APIServiceIP is the address of the Service "kubernetes": the first of ServiceCIDR.
	APIServiceIP string
	DNSServiceIP string

	node    func(index int) string
	podCIDR func(index int) string
}

// NodeIP is the address of a node on the bridge.
func (f Family) NodeIP(n Node) string { return f.node(n.Index) }

// NodePodCIDR is the range from which a node's pods get their addresses.
func (f Family) NodePodCIDR(n Node) string { return f.podCIDR(n.Index) }

// V4 is the IPv4 of the cluster.
var V4 = Family{
	HostIP:         "172.30.0.1",
	ControlPlaneIP: "172.30.0.2",
	LinkCIDR:       "172.30.0.0/24",
	LinkPrefixLen:  24,
	Everything:     "0.0.0.0/0",
	PodCIDR:        "10.244.0.0/16",
	ServiceCIDR:    "10.96.0.0/16",
	APIServiceIP:   "10.96.0.1",
	DNSServiceIP:   "10.96.0.10",
	node:           func(index int) string { return fmt.Sprintf("172.30.0.%d", 10+index) },
	podCIDR:        func(index int) string { return fmt.Sprintf("10.244.%d.0/24", index) },
}

// V6 is the IPv6 of the cluster: unique local addresses below fd5e:7cd0:e01::/48. Where
// IPv4 has a decimal number, IPv6 has the same digits, so that the two are easily told
// to be one. No other machine is on the bridge, so nothing need wait a second for the kernel
// to find out whether an address is taken.
var V6 = Family{
	HostIP:         "fd5e:7cd0:e01::1",
	ControlPlaneIP: "fd5e:7cd0:e01::2",
	LinkCIDR:       "fd5e:7cd0:e01::/64",
	LinkPrefixLen:  64,
	AddressFlags:   "nodad",
	Everything:     "::/0",
	PodCIDR:        "fd5e:7cd0:e01:100::/56",
	ServiceCIDR:    "fd5e:7cd0:e01:96::/112",
	APIServiceIP:   "fd5e:7cd0:e01:96::1",
	DNSServiceIP:   "fd5e:7cd0:e01:96::10",
	node:           func(index int) string { return fmt.Sprintf("fd5e:7cd0:e01::%d", 10+index) },
	podCIDR:        func(index int) string { return fmt.Sprintf("fd5e:7cd0:e01:1%02d::/64", index) },
}

// Families are the address families of a cluster.
type Families string

// Values of Families. The empty string is IPv4.
const (
	IPv4 Families = "ipv4"
	Dual Families = "dual" // IPv4 first
	IPv6 Families = "ipv6"
)

// ParseFamilies returns the families called name.
func ParseFamilies(name string) (Families, error) {
	switch f := Families(name); f {
	case IPv4, Dual, IPv6:
		return f, nil
	default:
		return "", fmt.Errorf("%q are no families of addresses: choose %s, %s or %s", name, IPv4, Dual, IPv6)
	}
}

// Name is what a user calls the families.
func (f Families) Name() string {
	if f == "" {
		return string(IPv4)
	}
	return string(f)
}

// Text is how a sentence calls the families.
func (f Families) Text() string {
	switch f {
	case Dual:
		return "IPv4 and IPv6"
	case IPv6:
		return "IPv6 alone"
	default:
		return "IPv4 alone"
	}
}

// All returns the families, the primary one first.
func (f Families) All() []Family {
	switch f {
	case Dual:
		return []Family{V4, V6}
	case IPv6:
		return []Family{V6}
	default:
		return []Family{V4}
	}
}

// Primary is the family of whatever has only one address.
func (f Families) Primary() Family { return f.All()[0] }

// HasIPv6 says whether IPv6 is among the families.
func (f Families) HasIPv6() bool { return f == Dual || f == IPv6 }

// List joins what each family has with commas, as the programs of Kubernetes want it.
func (f Families) List(of func(Family) string) string {
	var values []string
	for _, family := range f.All() {
		values = append(values, of(family))
	}
	return strings.Join(values, ",")
}

// APIServer is the address under which all programs except pods find the API server.
func (f Families) APIServer() string {
	return "https://" + net.JoinHostPort(f.Primary().ControlPlaneIP, strconv.Itoa(APIPort))
}
