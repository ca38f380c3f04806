// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// drain drains a node of the members of a cluster, as a person does before they work on
// it. What else runs there stays.
func (c *cluster) drain(node string, timeout time.Duration) error {
	_, err := env.Kubectl(c.ctx(), harness.Command{Args: []string{
		"drain", node, "--pod-selector=etcd_cluster=" + c.name, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=" + timeout.String(),
	}})
	return err
}

// uncordonLater makes sure that a node takes pods again, also if the test fails.
func (s *scenario) uncordonLater(nodes ...string) {
	s.Helper()
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		if _, err := env.Kubectl(ctx, harness.Command{Args: append([]string{"uncordon"}, nodes...)}); err != nil {
			s.Errorf("uncordon %v: %v", nodes, err)
		}
	})
}

func needNodes(t *testing.T, n int) {
	t.Helper()
	nodes, err := env.ReadyNodes(t.Context())
	if err != nil {
		t.Fatalf("list nodes: %v", err)
	}
	if len(nodes) < n {
		t.Skipf("this test needs %d nodes that are ready, and the cluster has %d (`make e2e E2E_NODES=%d` brings up a local one)", n, len(nodes), n)
	}
}

// TestDrain drains the node of one member whose volume is there, under a client that
// writes. A second node cannot be drained meanwhile. When the first one is given back the
// same member returns, and then the second one can, and the third.
func TestDrain(t *testing.T) {
	needNodes(t, 3)
	s := startFor(t, 2*testTimeout)
	c := s.create("drained", 3, etcdVersion, oneNodeEach)
	data, ids := c.fill(), c.ids()
	c.awaitDisruptionsAllowed(1)
	pods := c.members.Live()
	one, two, three := pods[0].Spec.NodeName, pods[1].Spec.NodeName, pods[2].Spec.NodeName
	s.uncordonLater(one, two, three)
	w := c.write()
	down := c.followDown()

	s.must(c.drain(one, time.Minute), "drain %s", one)
	err := c.drain(two, 5*time.Second)
	if err == nil {
		t.Errorf("node %s was drained while a voter was missing", two)
	} else {
		s.contains(err.Error(), "disruption budget")
	}
	s.kubectl("uncordon", one)
	c.settle(3)
	for _, node := range []string{two, three} {
		c.awaitDisruptionsAllowed(1)
		s.must(c.drain(node, time.Minute), "drain %s", node)
		s.kubectl("uncordon", node)
		c.settle(3)
	}
	if n := down(); n > 1 {
		t.Errorf("%d voters were down at the same time", n)
	}
	report := c.stopped(w)
	if report.LongestGap > 5*time.Second {
		t.Errorf("nothing was acknowledged for %v", report.LongestGap)
	}
	if now := c.ids(); !maps.Equal(now, ids) {
		t.Errorf("the members are %x, not %x", now, ids)
	}
	c.holds(data)
}

// TestDrainWithoutVolumes drains two of three nodes at the same time. The budget allows one
// eviction of a voter at a time, and another member joins on the remaining node.
func TestDrainWithoutVolumes(t *testing.T) {
	harness.RequireNightly(t)
	needNodes(t, 3)
	s := start(t)
	c := s.create("moved", 3, etcdVersion)
	if used := c.nodes(); len(used) != 3 {
		t.Fatalf("by default the members of %s are spread over the nodes, and these are on %v", c.name, used)
	}
	data := c.fill()
	c.awaitDisruptionsAllowed(1)
	nodes := slices.Sorted(maps.Keys(c.nodes()))
	s.uncordonLater(nodes[:2]...)
	w := c.write()
	down := c.followDown()
	drained := make(chan error, 2)
	for _, node := range nodes[:2] {
		go func() { drained <- c.drain(node, 2*time.Minute) }()
	}
	s.must(<-drained, "drain a node")
	s.must(<-drained, "drain another node")
	c.must(c.members.Pods.Await(s.ctx(), func(pods []*corev1.Pod) bool {
		return harness.AllReady(3)(pods) && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Spec.NodeName != nodes[2] })
	}), "three members on %s", nodes[2])
	c.settle(3)
	if n := down(); n > 1 {
		t.Errorf("%d voters were down at the same time", n)
	}
	report := c.stopped(w)
	if report.LongestGap > 5*time.Second {
		t.Errorf("nothing was acknowledged for %v", report.LongestGap)
	}
	c.holds(data)
}

// TestDrainOfSmallClusters drains the node of the only member of a cluster, without and with a
// volume that is bound to that node. Its disruption budget allows no eviction: another member
// joins on another node, and the first one goes.
func TestDrainOfSmallClusters(t *testing.T) {
	needNodes(t, 2)
	for _, kind := range []struct{ name, more string }{{"memory", ""}, {"volume", withVolumes}} {
		t.Run(kind.name, func(t *testing.T) {
			s := start(t)
			c := s.create("only-"+kind.name, 1, etcdVersion, kind.more)
			data, ids := c.fill(), c.ids()
			c.awaitDisruptionsAllowed(0)
			node := c.members.Live()[0].Spec.NodeName
			s.uncordonLater(node)
			w := c.write()
			from := time.Now()
			s.must(c.drain(node, 2*time.Minute), "drain %s", node)
			t.Logf("node %s is drained after %v", node, time.Since(from).Round(100*time.Millisecond))
			c.settle(1)
			c.stopped(w)
			if c.nodes()[node] {
				t.Errorf("a member is on node %s, which is drained", node)
			}
			for name := range c.ids() {
				if _, before := ids[name]; before {
					t.Errorf("member %s was not replaced", name)
				}
			}
			c.await(s.ctx(), "the condition to end", func(object *v1beta2.EtcdCluster) bool {
				return condition(object, v1beta2.ClusterConditionOnCordonedNode).Type == ""
			})
			s.contains(strings.Join(c.reasons(), " "), "MemberReplaced")
			if kind.more != "" {
				c.awaitPVCs("to be that of the new member", 1, func(p *corev1.PersistentVolumeClaim) bool {
					_, before := ids[p.Name]
					return !before
				})
			}
			c.holds(data)
			s.kubectl("uncordon", node)
		})
	}
}
