// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	// concurrentClients work on the same keys; each pauses for clientInterval.
	concurrentClients = 5
	clientInterval    = 100 * time.Millisecond
	// decisionTime bounds the search for an order that explains a history.
	decisionTime = 30 * time.Second
)

// linearizable lets clients read, write and swap the same few keys from the first moment
// of a cluster on. Meanwhile the controller does to the cluster all that it can do, and is
// killed. There must be one order of all operations that explains every response, and nothing
// that was acknowledged may be lost.
func linearizable(t *testing.T) {
	s := start(t)
	p := s.controller("linear", "--namespace="+s.namespace)
	c := s.cluster("linear")
	clients, step := c.clients()

	step("bootstrap", func() {
		s.apply(manifest(c.name, 3, previousVersion))
		c.settle(3)
	})
	w := c.write()
	step("3 to 5, the controller is killed", func() {
		s.kubectl("scale", "etcdcluster/linear", "--replicas=5")
		c.awaitPods(4)
		p.restart()
		c.settle(5)
	})
	step("5 to 3, the controller is killed", func() {
		s.kubectl("scale", "etcdcluster/linear", "--replicas=3")
		p.restart()
		c.settle(3)
	})
	step("a member is lost", func() { c.lose(c.follower().Pod) })
	step("the leader is lost", func() { c.lose(c.leader().Pod) })
	step("a leader's process is killed", func() {
		target := c.leader().Pod
		s.must(harness.Signal(target, "etcd", syscall.SIGKILL), "kill a member")
		err := c.members.Pods.Await(s.ctx(), func(pods []*corev1.Pod) bool {
			return slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
				return p.UID == target.UID && p.Status.ContainerStatuses[0].RestartCount > 0
			})
		})
		s.must(err, "the container to restart")
		c.settle(3)
	})
	step("another version, the controller is killed", func() {
		s.kubectl(patchVersion(c.name, etcdVersion)...)
		c.await(s.ctx(), "the first member to be moved", func(object *clusterObject) bool { return object.Status.TargetVersion != "" })
		p.restart()
		c.await(s.ctx(), "the version", func(object *clusterObject) bool {
			return isSettled(object, 3) && object.Status.CurrentVersion == etcdVersion
		})
	})

	c.stopped(w)
	c.explained(clients)
}

// clients starts the clients; step does something meanwhile.
func (c *cluster) clients() (clients *harness.Clients, step func(name string, do func())) {
	c.Helper()
	clients, err := env.Clients(c.ctx(), c.namespace, c.name+"-client", concurrentClients, clientInterval, c.members.TLS)
	c.must(err, "start the clients")
	return clients, func(name string, do func()) {
		c.Helper()
		from, before := time.Now(), len(clients.History.Operations())
		do()
		c.Logf("%s: %v, %d operations", name, time.Since(from).Round(10*time.Millisecond), len(clients.History.Operations())-before)
	}
}

// explained stops the clients, and fails the test unless one order of all their operations
// explains every response.
func (c *cluster) explained(clients *harness.Clients) {
	c.Helper()
	c.must(clients.Stop(), "stop the clients")
	c.Log(clients.History)
	if n := clients.History.Responses(); n < 200 {
		c.Errorf("the clients got %d responses: nothing was tested", n)
	}
	c.must(clients.History.Check(decisionTime), "the responses that the clients got")
}

// awaitPods waits until there are n pods.
func (c *cluster) awaitPods(n int) {
	c.Helper()
	c.must(c.members.Pods.Await(c.ctx(), func(pods []*corev1.Pod) bool { return len(pods) >= n }), "%d pods", n)
}

// lose deletes a pod with its data and waits until another member has taken its place.
func (c *cluster) lose(target *corev1.Pod) {
	c.Helper()
	c.kubectl("delete", "pod", target.Name, "--force", "--grace-period=0")
	c.await(c.ctx(), "the lost member to be replaced", func(object *clusterObject) bool {
		return isSettled(object, 3) && !slices.Contains(object.Status.Members.Ready, target.Name)
	})
	c.must(c.members.AwaitVoters(c.ctx(), 3, target.UID), "after a member was lost")
}
