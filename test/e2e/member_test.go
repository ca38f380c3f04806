// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// TestMemberLost deletes members whose data goes with their pods, in the ways in
// which pods get lost. The replacement is a new member and has everything.
func TestMemberLost(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("lossy", 3, etcdVersion)
	data := c.fill()
	for _, loss := range []struct {
		name   string
		target func() harness.Response
		args   []string
	}{
		{"deleted", c.follower, nil},
		{"deleted by force", c.follower, []string{"--force", "--grace-period=0"}},
		{"the leader", c.leader, []string{"--force", "--grace-period=0"}},
	} {
		w := c.write()
		target := loss.target()
		from := time.Now()
		s.kubectl(append([]string{"delete", "pod", target.Pod.Name, "--wait=false"}, loss.args...)...)
		c.readyPodsServe(target.Pod)
		c.await(s.ctx(), "the lost member to be replaced", func(object *clusterObject) bool {
			return isSettled(object, 3) && !slices.Contains(object.Status.Members.Ready, target.Pod.Name)
		})
		c.must(c.members.AwaitVoters(s.ctx(), 3), "after a member was lost")
		t.Logf("%s: 3 voters again after %v", loss.name, time.Since(from).Round(10*time.Millisecond))
		c.stopped(w)
		if ids := c.ids(); slices.Contains(slices.Collect(maps.Values(ids)), target.ID) {
			t.Errorf("%s: the member without its data came back under its old ID %x", loss.name, target.ID)
		}
		c.holds(data)
	}
	s.contains(s.kubectl("get", "events", "--field-selector=reason=MemberLost", "-o", "name"), "event")
}

// readyPodsServe waits until there are three ready pods without the lost one. Kubernetes
// sends clients to them from then on, so they respond. A pod that does not on a busy machine
// may be ready until its probe has failed, and no longer.
func (c *cluster) readyPodsServe(lost *corev1.Pod) {
	c.Helper()
	ready := func(pods []*corev1.Pod) bool {
		return harness.AllReady(3)(pods) && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.UID == lost.UID })
	}
	c.must(c.members.Pods.Await(c.ctx(), ready), "three ready pods")
	var last error
	err := wait.PollUntilContextCancel(c.within(noticeWithin), harness.PollInterval, true, func(ctx context.Context) (bool, error) {
		last = c.members.Reads(ctx)
		return last == nil || !ready(c.members.Pods.List()), nil
	})
	if err != nil {
		c.Errorf("Kubernetes keeps sending clients to a pod that does not serve them: %v", last)
	}
}

// TestMemberWithVolumeReturns deletes pods whose data is on volumes: the same member
// comes back, one by one, all at once, and after a rest at size 0.
func TestMemberWithVolumeReturns(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("kept", 3, etcdVersion, withVolumes)
	data := c.fill()
	ids := c.ids()

	same := func(after string) {
		t.Helper()
		c.settle(3)
		if now := c.ids(); !maps.Equal(now, ids) {
			t.Errorf("after %s the members are %x, not %x", after, now, ids)
		}
		c.holds(data)
	}
	target := c.leader().Pod
	from := time.Now()
	s.kubectl("delete", "pod", target.Name, "--force", "--grace-period=0")
	c.awaitNewPod(target)
	c.must(c.members.AwaitVoters(s.ctx(), 3), "after a pod was lost")
	t.Logf("3 voters again after %v", time.Since(from).Round(10*time.Millisecond))
	same("the loss of a pod")

	pods := c.members.Live()
	s.kubectl("delete", "pods", "-l", "etcd_cluster=kept", "--force", "--grace-period=0")
	for _, p := range pods {
		c.awaitNewPod(p)
	}
	same("the loss of all pods")

	s.kubectl("scale", "etcdcluster/kept", "--replicas=0")
	c.await(s.ctx(), "hibernation", func(object *clusterObject) bool { return object.Status.Phase == "Hibernated" })
	c.must(c.members.Pods.Await(s.ctx(), func(pods []*corev1.Pod) bool { return len(pods) == 0 }), "the pods of a hibernated cluster")
	s.kubectl("scale", "etcdcluster/kept", "--replicas=3")
	same("hibernation")
}

// awaitNewPod waits until a pod of the same name and another UID runs.
func (c *cluster) awaitNewPod(old *corev1.Pod) {
	c.Helper()
	err := c.members.Pods.Await(c.ctx(), func(pods []*corev1.Pod) bool {
		return slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
			return p.Name == old.Name && p.UID != old.UID && p.Status.PodIP != ""
		})
	})
	c.must(err, "pod %s to come back", old.Name)
}

// TestContainersKilled kills the processes of all members at once: the containers
// restart in their pods, on their data.
func TestContainersKilled(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("killed", 3, etcdVersion)
	data := c.fill()
	ids, pods := c.ids(), c.members.Live()
	for _, p := range pods {
		s.must(harness.Signal(p, "etcd", syscall.SIGKILL), "kill a member")
	}
	err := c.members.Pods.Await(s.ctx(), func(now []*corev1.Pod) bool {
		return !slices.ContainsFunc(now, func(p *corev1.Pod) bool { return p.Status.ContainerStatuses[0].RestartCount == 0 })
	})
	s.must(err, "all containers to restart")
	c.settle(3)
	if now := c.ids(); !maps.Equal(now, ids) {
		t.Errorf("the members are %x, not %x", now, ids)
	}
	for _, p := range pods {
		if !slices.ContainsFunc(c.members.Live(), func(now *corev1.Pod) bool { return now.UID == p.UID }) {
			t.Errorf("pod %s was replaced", p.Name)
		}
	}
	c.holds(data)
}
