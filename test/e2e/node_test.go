// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// oneNodeEach keeps members on nodes of their own, each with a volume there.
const oneNodeEach = withVolumes + "\n    antiAffinity: true"

// TestNodeFailures crashes, cuts off and reboots nodes that members run on. The
// quorum serves meanwhile, and the member comes back as the one that it was.
func TestNodeFailures(t *testing.T) {
	harness.RequireNightly(t)
	env.RequireLocal(t, harness.Nodes)
	nodes, err := env.ReadyNodes(t.Context())
	if err != nil {
		t.Fatalf("list nodes: %v", err)
	}
	if len(nodes) < 3 {
		t.Skipf("the local Kubernetes has %d nodes and this test needs 3: make e2e E2E_NODES=3", len(nodes))
	}
	s := start(t)
	c := s.create("spread", 3, etcdVersion, oneNodeEach)
	data, ids := c.fill(), c.ids()
	if used := c.nodes(); len(used) != 3 {
		t.Fatalf("the members are on the nodes %v", used)
	}
	for _, failure := range []struct {
		name, begin, end string
	}{
		{"crash", "kill", "start"},
		{"partition", "partition", "heal"},
		{"reboot", "reboot", ""},
	} {
		target := c.onFreeNode()
		w := c.write()
		from := time.Now()
		s.node(failure.begin, target.Spec.NodeName)
		if failure.end != "" {
			c.endureNodeFailure(failure.name, target)
			s.node(failure.end, target.Spec.NodeName)
		}
		s.awaitNode(target.Spec.NodeName, corev1.ConditionTrue)
		c.must(c.members.AwaitVoters(s.ctx(), 3), "after the %s", failure.name)
		c.settle(3)
		t.Logf("%s of %s: over after %v", failure.name, target.Spec.NodeName, time.Since(from).Round(100*time.Millisecond))
		report := c.stopped(w)
		if report.LongestGap > 5*time.Second {
			t.Errorf("%s: nothing was acknowledged for %v", failure.name, report.LongestGap)
		}
		if now := c.ids(); !maps.Equal(now, ids) {
			t.Errorf("after the %s the members are %x, not %x", failure.name, now, ids)
		}
		c.holds(data)
	}
}

// TestNodeRebooted restarts the one node that all members of a cluster without volumes
// are on: they come back in their pods, as the members that they were, with their data.
func TestNodeRebooted(t *testing.T) {
	env.RequireLocal(t, harness.Nodes)
	needNodes(t, 3)
	s := start(t)
	node := s.freeNode()
	c := s.create("rebooted", 3, etcdVersion, "\n  pod: {nodeSelector: {kubernetes.io/hostname: "+node+"}}")
	data, ids, uids := c.fill(), c.ids(), c.uids()
	from := time.Now()
	s.node("reboot", node)
	s.awaitNode(node, corev1.ConditionTrue)
	c.must(c.members.Pods.Await(s.ctx(), func(pods []*corev1.Pod) bool {
		return !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Status.ContainerStatuses[0].RestartCount == 0 })
	}), "the containers to start again")
	c.must(c.members.AwaitVoters(s.ctx(), 3), "after the reboot")
	c.settle(3)
	t.Logf("over after %v", time.Since(from).Round(100*time.Millisecond))
	c.same(ids, uids, true)
	c.holds(data)
}

// endureNodeFailure waits until Kubernetes and the status both say what is the case.
func (c *cluster) endureNodeFailure(what string, target *corev1.Pod) {
	c.Helper()
	c.awaitNode(target.Spec.NodeName, corev1.ConditionUnknown)
	object := c.await(c.ctx(), "Degraded after the "+what, func(object *clusterObject) bool {
		return is(object, v1beta2.ClusterConditionDegraded, corev1.ConditionTrue)
	})
	c.are(object, map[v1beta2.ClusterConditionType]corev1.ConditionStatus{
		v1beta2.ClusterConditionAvailable:  corev1.ConditionTrue,
		v1beta2.ClusterConditionQuorumLost: corev1.ConditionFalse,
	})
	if !slices.Contains(object.Status.Members.Unready, target.Name) {
		c.Errorf("%s: the members that are not ready are %v, not %s", what, object.Status.Members.Unready, target.Name)
	}
}

func (c *cluster) nodes() map[string]bool {
	used := map[string]bool{}
	for _, p := range c.members.Live() {
		used[p.Spec.NodeName] = true
	}
	return used
}

// programNodes returns the nodes that the installed programs run on.
func (s *scenario) programNodes() []string {
	s.Helper()
	var occupied []string
	for _, program := range []string{harness.Controller, harness.APIServer} {
		pods, err := env.ProgramPods(s.ctx(), program)
		s.must(err, "find %s", program)
		for _, p := range pods.List() {
			occupied = append(occupied, p.Spec.NodeName)
		}
		pods.Close()
	}
	return occupied
}

// onFreeNode returns the pod of a member on a node without the installed programs,
// so that what is tested is not how long Kubernetes takes to move those.
func (c *cluster) onFreeNode() *corev1.Pod {
	c.Helper()
	occupied := c.programNodes()
	for _, p := range c.members.Live() {
		if !slices.Contains(occupied, p.Spec.NodeName) {
			return p
		}
	}
	c.Fatalf("the programs run on %v: no node is free of them", occupied)
	return nil
}

func (s *scenario) node(action, name string) {
	s.Helper()
	_, err := env.LocalTool(s.ctx(), "node", action, name)
	if action == "kill" || action == "partition" {
		back := map[string]string{"kill": "start", "partition": "heal"}[action]
		s.Cleanup(func() {
			if !s.Failed() {
				return
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if _, err := env.LocalTool(ctx, "node", back, name); err != nil {
				s.Logf("bring node %s back: %v", name, err)
			}
		})
	}
	s.must(err, "node %s %s", action, name)
}

func (s *scenario) awaitNode(name string, ready corev1.ConditionStatus) {
	s.Helper()
	view, err := env.Node(s.ctx(), name)
	s.must(err, "watch node %s", name)
	defer view.Close()
	err = view.Await(s.within(90*time.Second), func(list []*corev1.Node) bool {
		return len(list) == 1 && slices.ContainsFunc(list[0].Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == ready
		})
	})
	s.must(err, "node %s to have Ready=%s", name, fmt.Sprint(ready))
}
