// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// A life of the controller in the sweep: from less than it takes to start to enough
// for several steps.
const (
	shortestLife = 200 * time.Millisecond
	longestLife  = 1500 * time.Millisecond
	// idleLives is how many lives may pass in which no member is added and none is promoted. On a busy
	// machine a program uses most of a short life to start, so the lives become longer meanwhile.
	idleLives = 40
)

// controllerKilled ends the controller with kill -9 again and again while it
// scales a cluster up, at moments that fall into every step. Each life goes on where
// the last one was cut off, and etcd notices nothing.
func controllerKilled(t *testing.T) {
	s := start(t)
	p := s.controller("sweep", "--namespace="+s.namespace)
	c := s.cluster("swept")
	s.apply(manifest("swept", 1, etcdVersion))
	c.settle(1)
	data := c.fill()
	leader := c.leader()
	w := c.write()
	view, err := env.Cluster(s.ctx(), s.namespace, "swept")
	s.must(err, "watch the cluster")
	t.Cleanup(view.Close)

	moments := rand.New(rand.NewPCG(1, 2))
	lives, idle, last := 1, 0, ""
	for _, size := range []int{3, 5} {
		s.kubectl("scale", "etcdcluster/swept", "--replicas="+string(rune('0'+size)))
		for done := false; !done; lives++ {
			if now := roles(c.get()); now != last {
				idle, last = 0, now
			}
			if idle++; idle > idleLives {
				t.Fatalf("not at size %d, and nothing has changed in the last %d of %d lives of the controller:\n%s", size, idleLives, lives, describe(c.get()))
			}
			longest := longestLife * time.Duration(10+idle) / 10
			life := shortestLife + time.Duration(moments.Int64N(int64(longest-shortestLife)))
			done = view.Await(s.within(life), reached(size)) == nil
			if !done {
				p.restart()
			}
		}
	}
	c.settle(5)
	t.Logf("the controller had %d lives", lives)
	c.noFailedWrite(w, leader, "members were added")
	c.holds(data)
	c.looksUntouched(5)
}

// roles says which members the status names, and how each takes part.
func roles(object *clusterObject) string {
	text := ""
	for _, m := range object.Status.MemberStatuses {
		text += fmt.Sprintf("%s %s, ", m.Name, m.Role)
	}
	return text
}

func reached(size int) func([]*v1beta2.EtcdCluster) bool {
	return func(list []*v1beta2.EtcdCluster) bool { return len(list) == 1 && isSettled(list[0], size) }
}

// looksUntouched fails the test unless the objects of the cluster are those of one
// that was never disturbed.
func (c *cluster) looksUntouched(size int) {
	c.Helper()
	err := c.members.Pods.Await(c.ctx(), func(pods []*corev1.Pod) bool { return len(pods) == size })
	c.must(err, "exactly %d pods", size)
	seeds := 0
	for _, p := range c.members.Pods.List() {
		if p.DeletionTimestamp != nil || p.Labels["etcd_role"] != "voter" {
			c.Errorf("pod %s: deleted at %v, role %s", p.Name, p.DeletionTimestamp, p.Labels["etcd_role"])
		}
		if flagOf(p.Spec.Containers[0].Command, "initial-cluster-token") != "" {
			seeds++
		}
	}
	if seeds > 1 {
		c.Errorf("%d pods started as seeds", seeds)
	}
	if budget := c.budget().Spec.MinAvailable.IntValue(); budget != size/2+1 {
		c.Errorf("the budget keeps %d of %d", budget, size)
	}
	if left := c.kubectl("get", "pvc,services", "-l", "etcd_cluster="+c.name, "-o", "name"); left != "service/"+c.name+"\nservice/"+c.name+"-client\n" {
		c.Errorf("PVCs and services are:\n%s", left)
	}
}

// TestInstalledProgramsKilled ends the installed controller and our API server with
// kill -9 while a cluster is scaled, and while an operation and a recovery wait. Members go on
// serving, and the rest follows as soon as Kubernetes has restarted the program.
func TestInstalledProgramsKilled(t *testing.T) {
	s := startFor(t, 8*time.Minute)
	t.Cleanup(func() { replacePrograms(t) })
	waiting := s.requestWhatWaits()
	c := s.create("sturdy", 1, etcdVersion)
	data := c.fill()
	w := c.write()
	type step struct {
		size    int
		program string
	}
	steps, size := []step{{3, harness.APIServer}, {5, harness.Controller}}, 5
	if harness.IsNightly() { // a kubelet waits longer before it restarts a container for the second time
		steps, size = append(steps, step{4, harness.APIServer}, step{3, harness.Controller}), 3
	}
	for _, step := range steps {
		s.kubectl("scale", "etcdcluster/sturdy", "--replicas="+string(rune('0'+step.size)))
		s.killProgram(step.program)
		from := time.Now()
		c.await(s.ctx(), "the size after "+step.program+" was killed", func(object *clusterObject) bool {
			return isSettled(object, step.size)
		})
		t.Logf("%s killed: %d members after %v", step.program, step.size, time.Since(from).Round(100*time.Millisecond))
		c.must(c.members.AwaitVoters(s.ctx(), step.size), "after %s was killed", step.program)
	}
	report := c.stopped(w)
	if report.LongestGap > 5*time.Second {
		t.Errorf("etcd did not serve for %v", report.LongestGap)
	}
	c.holds(data)
	c.looksUntouched(size)
	waiting.survive()
}

// killProgram kills the process of an installed program and waits until its
// container has been restarted and is ready.
func (s *scenario) killProgram(name string) {
	s.Helper()
	pods, err := env.ProgramPods(s.ctx(), name)
	s.must(err, "find %s", name)
	defer pods.Close()
	list := pods.List()
	if len(list) == 0 {
		s.Fatalf("%s does not run", name)
	}
	restarts := list[0].Status.ContainerStatuses[0].RestartCount
	s.must(harness.Signal(list[0], list[0].Spec.Containers[0].Name, syscall.SIGKILL), "kill %s", name)
	err = pods.Await(s.ctx(), func(now []*corev1.Pod) bool {
		return slices.ContainsFunc(now, func(p *corev1.Pod) bool {
			return p.UID == list[0].UID && harness.IsPodReady(p) && p.Status.ContainerStatuses[0].RestartCount > restarts
		})
	})
	s.must(err, "%s to be restarted", name)
}

// replacePrograms gives the installed programs new pods. Kubernetes restarts a
// container later and later the more often it ended, and would hold that against
// the tests that come next.
func replacePrograms(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, name := range []string{harness.APIServer, harness.Controller} {
		if err := env.RestartProgram(ctx, name); err != nil {
			t.Error(err)
		}
	}
}
