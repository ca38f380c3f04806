// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodeFault is an action of the program that runs the local Kubernetes, and the action that ends
// its effect. The second action does nothing if the effect has ended by itself.
func nodeFault(action, end string) func(context.Context, *stage) (undo, error) {
	return func(ctx context.Context, s *stage) (undo, error) {
		node := s.target.Spec.NodeName
		back := func(ctx context.Context) error {
			if _, err := s.env.LocalTool(ctx, "node", end, node); err != nil {
				return fmt.Errorf("node %s %s: %w", end, node, err)
			}
			return s.awaitNode(ctx, node)
		}
		if _, err := s.env.LocalTool(ctx, "node", action, node); err != nil {
			// The action may have been cut off in the middle.
			return nil, errors.Join(fmt.Errorf("node %s %s: %w", action, node, err), undoNow(ctx, back))
		}
		return back, nil
	}
}

// awaitNode waits until a node is ready.
func (s *stage) awaitNode(ctx context.Context, name string) error {
	return s.eventually(ctx, "wait for node "+name, func(ctx context.Context) error {
		node, err := s.env.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("node %s is not ready", name)
	})
}

// undoNow ends a fault that has not begun completely, also when ctx has ended.
func undoNow(ctx context.Context, end undo) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	return end(ctx)
}

// rule is a rule of the packet filter of a node, for one family of addresses.
type rule struct{ program, match string }

// filter adds rules that drop packets on nodes, before all others. The undo deletes them, and
// waits until the nodes are ready. A node may have lost its rules by itself.
func filter(ctx context.Context, s *stage, nodes []string, rules []rule) (undo, error) {
	var add, remove []string
	for _, r := range rules {
		add = append(add, fmt.Sprintf("%s -w -I %s -j DROP", r.program, r.match))
		remove = append(remove, fmt.Sprintf("while %[1]s -w -C %[2]s -j DROP 2>/dev/null; do %[1]s -w -D %[2]s -j DROP || exit 1; done", r.program, r.match))
	}
	end := func(ctx context.Context) error {
		var errs []error
		for _, node := range nodes {
			if _, err := s.env.LocalTool(ctx, "node", "shell", node, "sh", "-c", strings.Join(remove, "; ")); err != nil {
				errs = append(errs, fmt.Errorf("let packets pass on node %s: %w", node, err))
			}
		}
		for _, node := range nodes {
			errs = append(errs, s.awaitNode(ctx, node))
		}
		return errors.Join(errs...)
	}
	for _, node := range nodes {
		if _, err := s.env.LocalTool(ctx, "node", "shell", node, "sh", "-c", strings.Join(add, " && ")); err != nil {
			return nil, errors.Join(fmt.Errorf("drop packets on node %s: %w", node, err), undoNow(ctx, end))
		}
	}
	return end, nil
}

// forFamilies returns the rules for each family that pods have.
func forFamilies(s *stage, matches ...string) []rule {
	programs := []string{"iptables"}
	for _, p := range s.members.Live() {
		if len(p.Status.PodIPs) > 1 || strings.Contains(p.Status.PodIP, ":") {
			programs = append(programs, "ip6tables")
			break
		}
	}
	var rules []rule
	for _, program := range programs {
		for _, match := range matches {
			rules = append(rules, rule{program, match})
		}
	}
	return rules
}

// cutFromAPI cuts the target's node off from the kube-apiserver, and from nothing else.
func cutFromAPI(ctx context.Context, s *stage) (undo, error) {
	slice, err := s.env.Kube.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("find the kube-apiserver: %w", err)
	}
	program := "iptables"
	if slice.AddressType == "IPv6" {
		program = "ip6tables"
	}
	var rules []rule
	for i := range slice.Endpoints {
		for _, address := range slice.Endpoints[i].Addresses {
			for _, match := range []string{"INPUT -s", "FORWARD -s", "FORWARD -d", "OUTPUT -d"} {
				rules = append(rules, rule{program, match + " " + address})
			}
		}
	}
	return filter(ctx, s, []string{s.target.Spec.NodeName}, rules)
}

// cutFromMembers cuts the members on the target's node off from all others at the port that
// members use among each other. Clients and the controller reach all members.
func cutFromMembers(ctx context.Context, s *stage) (undo, error) {
	return filter(ctx, s, []string{s.target.Spec.NodeName}, forFamilies(s, "FORWARD -p tcp --dport 2380", "FORWARD -p tcp --sport 2380"))
}

// losePackets drops every fifth packet from and to the target's node and its pods, at random.
func losePackets(ctx context.Context, s *stage) (undo, error) {
	const loss = " -m statistic --mode random --probability 0.2"
	return filter(ctx, s, []string{s.target.Spec.NodeName}, forFamilies(s, "INPUT ! -i lo"+loss, "FORWARD"+loss))
}

// cutDNS drops the requests of all pods to name servers, on every node.
func cutDNS(ctx context.Context, s *stage) (undo, error) {
	nodes, err := s.env.ReadyNodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}
	return filter(ctx, s, nodes, forFamilies(s, "FORWARD -p udp --dport 53", "FORWARD -p tcp --dport 53"))
}
