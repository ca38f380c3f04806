// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

type clusterObject = v1beta2.EtcdCluster

const (
	// truthWithin is how soon the status must say what is wrong. The controller looks at a cluster at rest every
	// 15 seconds.
	truthWithin = 25 * time.Second
	// noticeWithin is how soon it must say that a member hangs: nothing announces
	// that, so it is noticed when the members are next asked.
	noticeWithin = 40 * time.Second
)

// TestQuorumLost destroys two of three members with their data. The status must say
// so at once, and nothing may be done that would make it worse.
func TestQuorumLost(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("lost", 3, etcdVersion)
	survivor := c.leader().Pod
	args := []string{"delete", "pods", "--force", "--grace-period=0"}
	from := time.Now()
	for _, p := range c.members.Live() {
		if p.Name != survivor.Name {
			// At once: a member that is deleted a moment before the other one is replaced
			// with the vote of that other one.
			c.hang(p)
			args = append(args, p.Name)
		}
	}
	s.kubectl(args...)
	c.await(s.within(truthWithin), "the status to report the loss of the quorum", func(object *clusterObject) bool {
		return is(object, v1beta2.ClusterConditionQuorumLost, corev1.ConditionTrue)
	})
	t.Logf("reported after %v", time.Since(from).Round(10*time.Millisecond))
	// The pods may take longer to end. Only then it is certain that two members no longer exist.
	object := c.await(s.within(2*time.Minute), "the status to say that two members no longer exist", func(object *clusterObject) bool {
		return strings.Contains(object.Status.Reason, "2 of 3 voters")
	})
	c.are(object, map[v1beta2.ClusterConditionType]corev1.ConditionStatus{
		v1beta2.ClusterConditionAvailable: corev1.ConditionFalse,
		v1beta2.ClusterConditionDegraded:  corev1.ConditionTrue,
	})
	status := &object.Status
	if ptr.Deref(status.Tolerance, 99) >= 0 || status.Phase != v1beta2.ClusterPhaseFailed || status.BlockedBy == nil {
		t.Errorf("the status of a lost cluster is\n%s", describe(object))
	}
	s.contains(status.Reason, "2 of 3 voters")
	s.contains(condition(object, v1beta2.ClusterConditionQuorumLost).Message, "restore a backup")
	s.contains(s.kubectl("get", "etcd", "lost", "-o", "wide"), fmt.Sprint(*status.Tolerance), "Failed", "2 of 3 voters")
	s.contains(s.rejected("", "scale", "etcd/lost", "--replicas=5"), "spec.replicas", "the quorum is lost", "/health")
	if !slices.Contains(c.reasons(), "QuorumLost") {
		t.Errorf("no event says that the quorum is lost: %v", c.reasons())
	}

	// The controller looks again several times in this while, and must leave the
	// survivor and its data alone.
	err := c.members.Pods.Await(s.within(10*time.Second), func(pods []*corev1.Pod) bool {
		return len(pods) != 1 || pods[0].UID != survivor.UID || pods[0].DeletionTimestamp != nil
	})
	if err == nil {
		t.Errorf("the survivor was not left alone: %v", c.members.Pods.List())
	}
	client, err := c.members.Client(survivor)
	s.must(err, "ask the survivor")
	response, err := client.Status(s.ctx(), client.Endpoints()[0])
	s.must(err, "ask the survivor")
	if response.Leader != 0 {
		t.Errorf("the survivor has a leader: it was made a cluster of its own")
	}
}

// TestMembersHang stops the process of one member, then of a second one: first the
// cluster is degraded and serves, then it has no quorum, and it recovers untouched.
func TestMembersHang(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("hung", 3, etcdVersion)
	data := c.fill()
	pods, first := c.members.Live(), c.follower().Pod
	second := slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return p.Name == first.Name })[0]
	c.hang(first)
	from := time.Now()
	object := c.await(s.within(noticeWithin), "Degraded", func(object *clusterObject) bool {
		return is(object, v1beta2.ClusterConditionDegraded, corev1.ConditionTrue)
	})
	t.Logf("Degraded after %v", time.Since(from).Round(10*time.Millisecond))
	c.are(object, map[v1beta2.ClusterConditionType]corev1.ConditionStatus{
		v1beta2.ClusterConditionAvailable:  corev1.ConditionTrue,
		v1beta2.ClusterConditionQuorumLost: corev1.ConditionFalse,
	})
	if tolerance := ptr.Deref(object.Status.Tolerance, 99); tolerance != 0 {
		t.Errorf("the tolerance is %d with one of three members down", tolerance)
	}
	s.contains(condition(object, v1beta2.ClusterConditionDegraded).Message, first.Name)
	if !slices.Equal(object.Status.Members.Unready, []string{first.Name}) || object.Status.Phase != v1beta2.ClusterPhaseRunning {
		t.Errorf("%s hangs, and the status is\n%s", first.Name, describe(object))
	}

	c.hang(second)
	from = time.Now()
	c.await(s.within(noticeWithin), "Available not to be True any more", func(object *clusterObject) bool {
		return !is(object, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue)
	})
	t.Logf("not Available after %v", time.Since(from).Round(10*time.Millisecond))
	c.await(s.within(noticeWithin), "the status to report the loss of the quorum", func(object *clusterObject) bool {
		return is(object, v1beta2.ClusterConditionQuorumLost, corev1.ConditionTrue) &&
			is(object, v1beta2.ClusterConditionAvailable, corev1.ConditionFalse) &&
			strings.Contains(condition(object, v1beta2.ClusterConditionQuorumLost).Message, "resumes")
	})
	t.Logf("QuorumLost after %v", time.Since(from).Round(10*time.Millisecond))

	c.resume(first)
	c.resume(second)
	c.settle(3)
	for _, p := range pods {
		if !slices.ContainsFunc(c.members.Live(), func(now *corev1.Pod) bool { return now.UID == p.UID }) {
			t.Errorf("pod %s was replaced", p.Name)
		}
	}
	c.holds(data)
	if !slices.Contains(c.reasons(), "QuorumRegained") {
		t.Errorf("no event says that the quorum is back: %v", c.reasons())
	}
}

// hang stops the process of a member; it goes on at the end of the test at the
// latest, or its pod could not end.
func (c *cluster) hang(pod *corev1.Pod) {
	c.Helper()
	pid, err := harness.ContainerProcess(pod, "etcd")
	c.must(err, "find the process of %s", pod.Name)
	c.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	c.must(syscall.Kill(pid, syscall.SIGSTOP), "stop the process of %s", pod.Name)
}

func (c *cluster) resume(pod *corev1.Pod) {
	c.Helper()
	c.must(harness.Signal(pod, "etcd", syscall.SIGCONT), "resume a member")
}
