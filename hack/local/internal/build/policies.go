// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package build

// networkPolicies is the program that enforces NetworkPolicies on a node. The bridge
// plugin of the cluster enforces none, so a test that needs them starts it on each node.
func networkPolicies() program {
	return program{
		component: "kube-router-" + KubeRouterVersion, name: "network-policies", module: "network-policies", pkg: ".", ldflags: strip,
		pin: "github.com/cloudnativelabs/kube-router@v" + KubeRouterVersion, current: "network-policies", onDemand: true,
	}
}
