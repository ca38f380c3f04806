// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package network makes the wires of the local cluster with the ip command.
//
//	machine            namespace eol-cp                   namespace eol-n1
//	eol0 ---veth--- eol-host | eolbr0 | eol-n1 ---veth--- eth0 | cni0 | pods
//	172.30.0.1               172.30.0.2                   172.30.0.11   10.244.1.0/24
//	fd5e:7cd0:e01::1         ::2                          ::11          fd5e:7cd0:e01:101::/64
//
// The bridge lies in the control plane's namespace and not on the machine. So no
// firewall of the machine (such as Docker's, which drops bridged packets) sees the
// cluster's traffic, and deleting namespaces deletes everything. To cut a node off,
// its port on the bridge is set down.
package network
