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
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// A partition cuts the nodes of two of three members off from Kubernetes and from the third
// member, but not from each other and their clients. Kubernetes takes the nodes for dead.
// A cluster may recover by itself, or a person asks it to, and it must not: the two acknowledge
// writes all the time.

const (
	apart         = "\n  pod:\n    antiAffinity: true"
	recoversAlone = "\n  recovery: {quorumLoss: Automatic}"
)

// leaveNodesSoon asks that pods leave a node that does not respond after five seconds. They stay.
func leaveNodesSoon() string {
	const toleration = "\n    - {key: node.kubernetes.io/%s, operator: Exists, effect: NoExecute, tolerationSeconds: 5}"
	return apart + "\n    tolerations:" + fmt.Sprintf(toleration, "unreachable") + fmt.Sprintf(toleration, "not-ready")
}

// staysOnItsNode is true for a pod that Kubernetes never deletes because its node does not
// respond.
func staysOnItsNode(p *corev1.Pod) bool {
	for _, key := range []string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady} {
		i := slices.IndexFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool {
			return (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		})
		if i < 0 || p.Spec.Tolerations[i].TolerationSeconds != nil {
			return false
		}
	}
	return true
}

// TestMajorityBehindAPartition cuts two nodes off, with the majorities of three clusters on them.
//   - Pods of the one stay on nodes that do not respond, so every write that was acknowledged
//     behind the partition exists after it.
//   - The author of the second wants its pods to leave such nodes after five seconds. They stay, too, and
//     every acknowledged write exists after the partition.
//   - A person requests a restore in place and then a recovery of the third, which has volumes. Each
//     waits for the nodes. Every acknowledged write exists after the partition, too.
func TestMajorityBehindAPartition(t *testing.T) {
	env.RequireLocal(t, harness.Nodes)
	needNodes(t, 3)
	s := startFor(t, 8*time.Minute)
	here := s.gatherPrograms()
	stays, staying := s.createForPartition("stays", here, recoversAlone+apart)
	hurries, hurried := s.createForPartition("hurries", here, recoversAlone+leaveNodesSoon())
	asks, asked := s.createForPartition("asks", here, withVolumes)
	asks.backUpOn(here)
	ids, uids := stays.ids(), stays.uids()
	hurriedIDs, hurriedUIDs := hurries.ids(), hurries.uids()
	askedIDs, askedUIDs := asks.ids(), asks.uids()
	for _, pod := range slices.Concat(staying, hurried) {
		if !staysOnItsNode(pod) {
			t.Errorf("Kubernetes would delete pod %s behind a partition: %+v", pod.Name, pod.Spec.Tolerations)
		}
	}

	p := s.cutOff(staying[0].Spec.NodeName, staying[1].Spec.NodeName)
	behindStays, behindHurries, behindAsks := p.writeBehind(stays, staying), p.writeBehind(hurries, hurried), p.writeBehind(asks, asked)
	for _, pod := range staying {
		s.awaitNode(pod.Spec.NodeName, corev1.ConditionUnknown)
	}
	asks.requestsWait(asked)
	stayWithoutRecovery(stays, hurries)
	p.heal()

	stays.kept(behindStays, ids, uids)
	hurries.kept(behindHurries, hurriedIDs, hurriedUIDs)
	asks.kept(behindAsks, askedIDs, askedUIDs)
	if r := asks.get().Status.Recovery; r == nil || r.Phase != v1beta2.RecoveryPhaseAbandoned {
		t.Errorf("the recovery that was requested is %+v", r)
	}
}

// createForPartition makes a cluster with a member on the node of the installed programs, and
// returns the pods of the other two.
func (s *scenario) createForPartition(name, here, spec string) (*cluster, []*corev1.Pod) {
	s.Helper()
	c := s.create(name, 3, etcdVersion, spec)
	var far []*corev1.Pod
	for _, p := range c.members.Live() {
		if p.Spec.NodeName != here {
			far = append(far, p)
		}
	}
	if len(far) != 2 {
		s.Fatalf("%d members of %s are on other nodes than %s", len(far), name, here)
	}
	return c, far
}

// stayWithoutRecovery fails the test if a recovery begins in a time that is longer than the
// controller waits before it recovers a cluster by itself.
func stayWithoutRecovery(clusters ...*cluster) {
	clusters[0].Helper()
	<-clusters[0].within(45 * time.Second).Done()
	for _, c := range clusters {
		if r := c.get().Status.Recovery; r != nil {
			c.Errorf("a recovery of %s began although the majority serves: %+v", c.name, r)
		}
	}
}

// requestsWait requests a restore in place, cancels it, and requests a recovery. Each has a new member
// ready, and takes no old one away while the nodes of some are not ready.
func (c *cluster) requestsWait(far []*corev1.Pod) {
	c.Helper()
	c.await(c.within(time.Minute), "the loss of the quorum", func(object *v1beta2.EtcdCluster) bool {
		return is(object, v1beta2.ClusterConditionQuorumLost, corev1.ConditionTrue)
	})
	waits := func(object *v1beta2.EtcdCluster) bool {
		b := object.Status.BlockedBy
		return b != nil && b.Reason == v1beta2.ReasonOldMemberMayRun &&
			!slices.ContainsFunc(far, func(p *corev1.Pod) bool { return !strings.Contains(b.Message, p.Name) })
	}
	c.apply(restoreManifest("hasty", c.name, "  backup: {name: once}"))
	c.await(c.within(2*time.Minute), "the restore to wait for the nodes", waits)
	c.kubectl("delete", "etcdrestore", "hasty", "--timeout=60s")
	c.await(c.within(time.Minute), "the end of the restore", func(object *v1beta2.EtcdCluster) bool {
		return object.Status.Recovery != nil && object.Status.Recovery.Phase == v1beta2.RecoveryPhaseAbandoned
	})
	_, err := c.recoverNow()
	c.must(err, "request a recovery")
	object := c.await(c.within(2*time.Minute), "the recovery to wait for the nodes", waits)
	c.contains(object.Status.BlockedBy.Unblock, "Bring the node back")
}

// kept ends a client behind a partition that is over, and fails the test unless the members, their pods and
// each acknowledged write are there.
func (c *cluster) kept(w *behind, ids map[string]uint64, uids map[string]types.UID) {
	c.Helper()
	acknowledged := w.stop()
	c.settle(3)
	c.same(ids, uids, true)
	if lost := c.missing(acknowledged); len(lost) > 0 {
		c.Errorf("%s: %d writes were acknowledged and are lost: %v", c.name, len(lost), lost)
	}
}

// backUpOn makes the backup "once" on a volume of a node.
func (c *cluster) backUpOn(node string) {
	c.Helper()
	uncordon := c.cordonOthers(node)
	defer uncordon()
	c.volume()
	c.apply(backupManifest("once", "  etcdCluster: {name: "+c.name+"}"+toVolume))
	c.awaitBackup(c.within(time.Minute), "once", "success", hasSucceeded)
}

// missing returns those of the keys that the cluster does not have.
func (c *cluster) missing(keys []string) []string {
	c.Helper()
	if len(keys) < 20 {
		c.Errorf("only %d writes were acknowledged behind the partition: %v", len(keys), keys)
	}
	client, err := c.members.Client(c.leader().Pod)
	c.must(err, "ask the leader")
	var missing []string
	for _, key := range keys {
		r, err := client.Get(c.ctx(), key)
		c.must(err, "read %s", key)
		if r.Count != 1 {
			missing = append(missing, key)
		}
	}
	c.Logf("%d of %d keys are missing", len(missing), len(keys))
	return missing
}

// gatherPrograms has the controller, and the provisioner of volumes, run on the node of the API
// server, whose volume is there, and returns that node.
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
	uncordon := s.cordonOthers(here)
	defer uncordon()
	s.kubectl("-n", metav1.NamespaceSystem, "rollout", "restart", "deployment/local-path-provisioner")
	s.kubectl("-n", metav1.NamespaceSystem, "rollout", "status", "deployment/local-path-provisioner", "--timeout=60s")
	if on(harness.Controller) == here {
		return here
	}
	replicas, err := env.ScaleProgram(s.ctx(), harness.Controller, 0)
	s.must(err, "stop the controller")
	_, err = env.ScaleProgram(s.ctx(), harness.Controller, replicas)
	s.must(err, "start the controller")
	if now := on(harness.Controller); now != here {
		s.Fatalf("the controller runs on %s, not on %s", now, here)
	}
	return here
}

// cordonOthers has new pods run on one node alone, until uncordon or the end of the test.
func (s *scenario) cordonOthers(here string) (uncordon func()) {
	s.Helper()
	nodes, err := env.ReadyNodes(s.ctx())
	s.must(err, "list the nodes")
	others := slices.DeleteFunc(nodes, func(n string) bool { return n == here })
	s.uncordonLater(others...)
	s.kubectl(append([]string{"cordon"}, others...)...)
	return func() { s.kubectl(append([]string{"uncordon"}, others...)...) }
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

// writeBehind writes a key of a cluster again and again through etcdctl on the first node, for
// ten minutes at most.
func (p *partition) writeBehind(c *cluster, members []*corev1.Pod) *behind {
	var endpoints []string
	for _, m := range members {
		endpoints = append(endpoints, "http://"+m.Status.PodIP+":2379")
	}
	w := &behind{scenario: p.scenario, node: p.nodes[0], stopFile: "/tmp/" + p.namespace + "-" + c.name + "-stop", out: make(chan string, 1)}
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
