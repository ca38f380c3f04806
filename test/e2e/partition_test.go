// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// TestMajorityBehindAPartition cuts the nodes of two of three members off from Kubernetes
// and from the third member, but not from each other and their clients. Kubernetes takes
// the nodes for dead and deletes the pods. The cluster may recover by itself, and must not:
// the two acknowledge writes all the time. When the partition is over, all of these are
// there.
func TestMajorityBehindAPartition(t *testing.T) {
	needNodes(t, 3)
	s := startFor(t, 8*time.Minute)
	here := s.gatherPrograms()
	c := s.create("cut", 3, etcdVersion, `
  recovery: {quorumLoss: Automatic}
  pod:
    antiAffinity: true
    tolerations:
    - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 5}
    - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 5}`)
	var far []*corev1.Pod
	for _, p := range c.members.Live() {
		if p.Spec.NodeName != here {
			far = append(far, p)
		}
	}
	if len(far) != 2 {
		t.Fatalf("%d members are on other nodes than %s", len(far), here)
	}

	p := s.cutOff(far[0].Spec.NodeName, far[1].Spec.NodeName)
	w := p.writeBehind(far)
	from := time.Now()
	object := c.await(s.within(2*time.Minute), "the pods to be deleted, which proves nothing", func(object *v1beta2.EtcdCluster) bool {
		q := condition(object, v1beta2.ClusterConditionQuorumLost)
		return q.Status == corev1.ConditionTrue && strings.Contains(q.Message, far[0].Name+" is being deleted") && strings.Contains(q.Message, far[1].Name+" is being deleted")
	})
	t.Logf("%s %v after the cut: %s", v1beta2.ClusterConditionQuorumLost, time.Since(from).Round(time.Second), condition(object, v1beta2.ClusterConditionQuorumLost).Message)
	s.contains(object.Status.BlockedBy.Unblock, "out-of-service")
	// Longer than the controller waits before it recovers a cluster by itself.
	<-s.within(45 * time.Second).Done()
	if r := c.get().Status.Recovery; r != nil {
		t.Errorf("a recovery began although the majority serves: %+v", r)
	}
	p.heal()
	acknowledged := w.stop()
	t.Logf("%d writes were acknowledged behind the partition", len(acknowledged))
	if len(acknowledged) < 20 {
		t.Errorf("only %d writes were acknowledged: %v", len(acknowledged), acknowledged)
	}
	c.await(s.within(3*time.Minute), "three members after the partition", func(object *v1beta2.EtcdCluster) bool {
		return is(object, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue) && len(object.Status.Members.Ready) == 3 &&
			!slices.ContainsFunc(far, func(p *corev1.Pod) bool { return slices.Contains(object.Status.Members.Ready, p.Name) })
	})
	client, err := c.members.Client(c.leader().Pod)
	s.must(err, "ask the leader")
	for _, key := range acknowledged {
		r, err := client.Get(s.ctx(), key)
		s.must(err, "read %s", key)
		if r.Count != 1 {
			t.Errorf("%s was acknowledged and is lost", key)
		}
	}
}

// gatherPrograms has the controller run on the node of the API server, whose volume is
// there, and returns that node.
func (s *scenario) gatherPrograms() string {
	s.Helper()
	on := func(program string) string {
		pods, err := env.ProgramPods(s.ctx(), program)
		s.must(err, "find %s", program)
		defer pods.Close()
		var node string
		err = pods.Await(s.ctx(), func(list []*corev1.Pod) bool {
			i := slices.IndexFunc(list, func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil && p.Spec.NodeName != "" })
			if i >= 0 {
				node = list[i].Spec.NodeName
			}
			return i >= 0
		})
		s.must(err, "find the node of %s", program)
		return node
	}
	here := on(harness.APIServer)
	if on(harness.Controller) == here {
		return here
	}
	nodes, err := env.ReadyNodes(s.ctx())
	s.must(err, "list the nodes")
	others := slices.DeleteFunc(nodes, func(n string) bool { return n == here })
	s.uncordonLater(others...)
	s.kubectl(append([]string{"cordon"}, others...)...)
	replicas, err := env.ScaleProgram(s.ctx(), harness.Controller, 0)
	s.must(err, "stop the controller")
	_, err = env.ScaleProgram(s.ctx(), harness.Controller, replicas)
	s.must(err, "start the controller")
	s.kubectl(append([]string{"uncordon"}, others...)...)
	if now := on(harness.Controller); now != here {
		s.Fatalf("the controller runs on %s, not on %s", now, here)
	}
	return here
}

// partition is a cut between some nodes and everything else.
type partition struct {
	*scenario
	nodes []string
	from  []string
}

// cutOff cuts nodes off from all others and from Kubernetes, but not from each other.
func (s *scenario) cutOff(nodes ...string) *partition {
	s.Helper()
	p := &partition{scenario: s, nodes: nodes}
	all, err := env.Kube.CoreV1().Nodes().List(s.ctx(), metav1.ListOptions{})
	s.must(err, "list the nodes")
	for i := range all.Items {
		n := &all.Items[i]
		if slices.Contains(nodes, n.Name) {
			continue
		}
		for _, a := range n.Status.Addresses {
			if a.Type == corev1.NodeInternalIP && !strings.Contains(a.Address, ":") {
				p.from = append(p.from, a.Address)
			}
		}
	}
	for line := range strings.Lines(p.on(s.ctx(), nodes[0], "ip -4 route show")) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[1] == "via" && slices.Contains(p.from, fields[2]) {
			p.from = append(p.from, fields[0]) // the pods of a node
		}
	}
	slice, err := env.Kube.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Get(s.ctx(), "kubernetes", metav1.GetOptions{})
	s.must(err, "find the kube-apiserver")
	for i := range slice.Endpoints {
		p.from = append(p.from, slice.Endpoints[i].Addresses...)
	}
	s.Cleanup(p.heal)
	for _, n := range nodes {
		p.on(s.ctx(), n, p.rules("-I"))
	}
	return p
}

// rules returns the commands that add the rules of the cut, or delete them.
func (p *partition) rules(change string) string {
	var commands []string
	for _, address := range p.from {
		for _, rule := range []string{"INPUT -s", "FORWARD -s", "FORWARD -d", "OUTPUT -d"} {
			commands = append(commands, fmt.Sprintf("iptables -w %s %s %s -j DROP", change, rule, address))
		}
	}
	return strings.Join(commands, " && ")
}

// heal ends the cut. It may be called again.
func (p *partition) heal() {
	p.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.Context()), time.Minute)
	defer cancel()
	for _, n := range p.nodes {
		p.on(ctx, n, p.rules("-D"))
	}
	p.nodes = nil
}

// on runs a command on a node.
func (p *partition) on(ctx context.Context, node, command string) string {
	p.Helper()
	out, err := env.LocalTool(ctx, "node", "shell", node, "sh", "-c", command)
	p.must(err, "on node %s", node)
	return out
}

// behind is a client on the far side of a partition.
type behind struct {
	*scenario
	node, stopFile string
	out            chan string
}

// writeBehind writes a key again and again through etcdctl on the first node, for ten
// minutes at most.
func (p *partition) writeBehind(members []*corev1.Pod) *behind {
	var endpoints []string
	for _, m := range members {
		endpoints = append(endpoints, "http://"+m.Status.PodIP+":2379")
	}
	w := &behind{scenario: p.scenario, node: p.nodes[0], stopFile: "/tmp/" + p.namespace + "-stop", out: make(chan string, 1)}
	script := fmt.Sprintf("for i in $(seq 1 6000); do test -e %s && break; "+
		"etcdctl --endpoints=%s --command-timeout=2s put behind/$i $i >/dev/null 2>&1 && echo behind/$i; sleep 0.1; done; rm -f %s",
		w.stopFile, strings.Join(endpoints, ","), w.stopFile)
	go func() {
		out, err := env.LocalTool(context.WithoutCancel(p.ctx()), "node", "shell", w.node, "sh", "-c", script)
		if err != nil {
			p.Errorf("write behind the partition: %v", err)
		}
		w.out <- out
	}()
	p.Cleanup(func() { w.stop() })
	return w
}

// stop ends the client and returns the keys that were acknowledged. It may be called again.
func (w *behind) stop() []string {
	w.Helper()
	if w.node == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.Context()), time.Minute)
	defer cancel()
	_, err := env.LocalTool(ctx, "node", "shell", w.node, "touch", w.stopFile)
	w.node = ""
	if err != nil {
		w.Errorf("stop the client behind the partition: %v", err)
		return nil
	}
	return strings.Fields(<-w.out)
}
