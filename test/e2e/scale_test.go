// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// mostDropped is how many writes may fail while one of an even number of voters is removed. A
// member that hands over drops what is under way: the more, the slower the disk.
const mostDropped = 30

// someLearnedFromController: at least one of the members that joined heard sooner from the
// controller that it was added than from the kubelet.
func (c *cluster) someLearnedFromController() {
	c.Helper()
	waited := 0
	for _, p := range c.members.Live() {
		log := c.kubectl("logs", p.Name, "-c", "etcd")
		if strings.Contains(log, "says the controller") {
			return
		}
		if strings.Contains(log, "launcher:") {
			waited++
		}
	}
	c.Errorf("all %d members that joined heard it from the kubelet first", waited)
}

// TestScale goes from three to five members, back, and down to one, while a client
// writes all the time.
func TestScale(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("scaled", 3, etcdVersion)
	data := c.fill()
	rows := c.watchRows()
	leader := c.leader()
	w := c.write()

	s.kubectl("scale", "etcdcluster/scaled", "--replicas=5")
	object := c.settle(5)
	if tolerance := ptr.Deref(object.Status.Tolerance, 99); tolerance != 2 {
		t.Errorf("the tolerance of 5 members is %d", tolerance)
	}
	if budget := c.budget().Spec.MinAvailable.IntValue(); budget != 3 {
		t.Errorf("the budget of 5 members keeps %d", budget)
	}
	c.noFailedWrite(w, leader, "members were added")
	c.someLearnedFromController()
	// A member completes its open requests before it is removed, as long as the others are a
	// quorum without it; the last but one has to be removed first.
	for _, size := range []int{3, 1} {
		w = c.write()
		fails := t.Errorf
		if c.shrinkKeepingLeader(size) {
			fails = t.Logf
		}
		if report := c.stopped(w); report.Failed > mostDropped && size > 1 {
			fails("%d of %d writes failed while members were removed: %v", report.Failed, report.Sent, report.Errors)
		}
	}
	c.holds(data)

	seen := rows("1 1/1")
	for _, want := range []string{"3 3/3", "5 5/5", "3 3/3", "1 1/1"} {
		i := slices.Index(seen, want)
		if i < 0 {
			t.Fatalf("kubectl get --watch did not show %q after what came before it; it showed %q", want, seen)
		}
		seen = seen[i:]
	}

	s.contains(s.rejected("", "scale", "etcdcluster/scaled", "--replicas=8"), "size", "between 0 and 7")
	s.contains(s.rejected("", "scale", "etcdcluster/scaled", "--replicas=0"), "size", "persistentVolumeClaimSpec")
	s.kubectl("scale", "etcdcluster/scaled", "--replicas=7", "--dry-run=server")
}

// asNodePort makes the client Service reachable from outside the nodes.
const asNodePort = `
  services:
    client: {type: NodePort}`

// TestScaleThroughService takes two of five members away from clients that reach them
// through the service, by connections that they keep.
func TestScaleThroughService(t *testing.T) {
	env.RequireLocal(t, harness.PodNetwork)
	t.Parallel()
	s := start(t)
	c := s.create("served", 5, etcdVersion, asNodePort)
	address := c.nodePort()
	for _, step := range []struct {
		to, most int
		because  string
	}{
		{4, 5, "a connection may be made while a node still leads to a member that has just left"},
		{3, mostDropped, "writes that are under way in a hand-over are dropped"},
	} {
		w, err := harness.WriteThrough(s.ctx(), writeInterval, address, 10)
		s.must(err, "write through %s", address)
		from := time.Now()
		fails := t.Errorf
		if c.shrinkKeepingLeader(step.to) {
			fails = t.Logf
		}
		t.Logf("%d members after %v", step.to, time.Since(from).Round(time.Millisecond))
		if report := c.stopped(w); report.Failed > step.most {
			fails("to %d members: %d of %d writes through the service failed, more than %d (%s): %v",
				step.to, report.Failed, report.Sent, step.most, step.because, report.Errors)
		}
	}
}

// nodePort returns where the client Service is reached on a node.
func (c *cluster) nodePort() string {
	c.Helper()
	service, err := env.Kube.CoreV1().Services(c.namespace).Get(c.ctx(), c.name+"-client", metav1.GetOptions{})
	c.must(err, "read the client Service")
	nodes, err := env.Kube.CoreV1().Nodes().List(c.ctx(), metav1.ListOptions{})
	c.must(err, "list the nodes")
	for i := range nodes.Items {
		for _, a := range nodes.Items[i].Status.Addresses {
			if a.Type == corev1.NodeInternalIP {
				return net.JoinHostPort(a.Address, strconv.Itoa(int(service.Spec.Ports[0].NodePort)))
			}
		}
	}
	c.Fatal("no node has an address")
	return ""
}

// shrinkKeepingLeader scales down and makes sure that the leader stays: there is
// always another member that can go. It is true if etcd has elected by itself meanwhile,
// which fails the writes that are under way. It does not say so of a leader that was removed:
// the controller may have done that while it led.
func (c *cluster) shrinkKeepingLeader(n int) (elected bool) {
	c.Helper()
	before := c.leader()
	c.kubectl("scale", "etcdcluster/"+c.name, "--replicas="+string(rune('0'+n)))
	c.settle(n)
	after := c.leader()
	switch {
	case after.Term != before.Term:
		c.Logf("etcd elected by itself meanwhile: term %d, then %d", before.Term, after.Term)
	case after.ID != before.ID:
		c.Errorf("the leader %s was removed", before.Pod.Name)
	}
	if slices.Contains(c.reasons(), "LeaderMoved") {
		c.Errorf("the leadership was moved although others could go")
	}
	stays := slices.ContainsFunc(c.members.Live(), func(p *corev1.Pod) bool { return p.UID == before.Pod.UID })
	return after.Term != before.Term && stays
}

// watchRows runs kubectl get --watch; the function that it returns ends it and gives
// the columns SIZE and READY of each row. Before, it gives kubectl some time to print
// the row that is expected last.
func (c *cluster) watchRows() func(last string) []string {
	c.Helper()
	cmd := env.KubectlCommand(c.ctx(), harness.Command{Args: []string{
		"get", "etcdcluster", c.name, "-n", c.namespace, "--watch", "--no-headers",
	}})
	pipe, err := cmd.StdoutPipe()
	c.must(err, "kubectl get --watch")
	c.must(cmd.Start(), "kubectl get --watch")
	var mu sync.Mutex
	var rows []string
	printed := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(rows)
	}
	begun, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			cells := strings.Fields(lines.Text())
			if len(cells) < 3 {
				continue
			}
			mu.Lock()
			rows = append(rows, cells[1]+" "+cells[2])
			first := len(rows) == 1
			mu.Unlock()
			if first {
				close(begun)
			}
		}
	}()
	select {
	case <-begun:
	case <-done:
		c.Fatal("kubectl get --watch ended without a row")
	}
	return func(last string) []string {
		c.Helper()
		met(c.within(30*time.Second), func() bool { return slices.Contains(printed(), last) })
		c.must(cmd.Process.Kill(), "end kubectl get --watch")
		<-done
		_ = cmd.Wait() // It was killed: that is the error.
		return printed()
	}
}
