// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// previousVersion has an image, too, and differs from etcdVersion in the patch only.
const previousVersion = "3.6.11"

// TestVersions runs every minor version of etcd that is maintained.
func TestVersions(t *testing.T) {
	t.Parallel()
	s := start(t)
	for name, version := range map[string]string{"v34": "3.4.23", "v35": "3.5.35", "v37": "3.7.3"} {
		c := s.create(name, 3, version)
		for member, a := range c.responses() {
			if a.Version != version {
				t.Errorf("member %s runs %s, not %s", member, a.Version, version)
			}
		}
		c.holds(c.fill())
		s.kubectl("delete", "etcd", name)
	}
}

// TestPatchUpgrade moves a cluster to another patch version while a client writes.
func TestPatchUpgrade(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("patched", 3, previousVersion)
	data := c.fill()
	before := c.leader()
	ids := c.ids()
	w := c.write()
	roll := c.followRoll(etcdVersion)
	from := time.Now()
	s.kubectl(patchVersion("patched", etcdVersion)...)
	object := c.await(s.ctx(), "the new version", func(object *clusterObject) bool {
		return isSettled(object, 3) && object.Status.CurrentVersion == etcdVersion && object.Status.TargetVersion == ""
	})
	t.Logf("upgraded in %v", time.Since(from).Round(10*time.Millisecond))
	order, down := roll()
	report := c.stopped(w)
	c.holds(data)

	if report.LongestGap > 5*time.Second {
		t.Errorf("nothing was acknowledged for %v", report.LongestGap)
	}
	if down > 1 {
		t.Errorf("%d members were down at the same time", down)
	}
	if len(order) != 3 || (order[2] != before.Pod.Name && c.leader().Term <= before.Term+1) {
		t.Errorf("the order was %v; the leader %s must come last", order, before.Pod.Name)
	}
	if now := c.ids(); len(now) != 3 || now[order[0]] != ids[order[0]] {
		t.Errorf("the members are %x, not %x", now, ids)
	}
	for _, m := range object.Status.MemberStatuses {
		if m.Version != etcdVersion {
			t.Errorf("member %s runs %s", m.Name, m.Version)
		}
	}
}

// followRoll watches which pods get an image of the version, in which order, and how
// many pods were not ready at the same time.
func (c *cluster) followRoll(version string) func() (order []string, down int) {
	c.Helper()
	var order []string
	serving := served{}
	stop := c.follow(func(pods []*corev1.Pod) int {
		unready := 0
		for _, p := range pods {
			if p.Annotations["etcd.version"] == version && !slices.Contains(order, p.Name) {
				order = append(order, p.Name)
			}
			if serving.isStopped(p) {
				unready++
			}
		}
		return unready
	})
	return func() ([]string, int) {
		most := stop()
		return order, most
	}
}

// served remembers the container with which each pod was last ready.
type served map[string]string

// isStopped is true for a pod whose member was stopped and is not back. It is not ready, and
// not only because of a late probe on a busy machine.
func (s served) isStopped(p *corev1.Pod) bool {
	for i := range p.Status.ContainerStatuses {
		container := &p.Status.ContainerStatuses[i]
		if harness.IsPodReady(p) {
			s[p.Name] = container.ContainerID
			return false
		}
		if p.DeletionTimestamp == nil && container.State.Running != nil && container.ContainerID == s[p.Name] {
			return false
		}
	}
	return true
}

// follow watches the pods and returns the most that was counted. What the pods said
// when it was more than one is shown.
func (c *cluster) follow(counted func([]*corev1.Pod) int) (stop func() int) {
	c.Helper()
	ctx, cancel := context.WithCancel(c.ctx())
	done := make(chan struct{})
	most := 0
	go func() {
		defer close(done)
		_ = c.members.Pods.Await(ctx, func(pods []*corev1.Pod) bool {
			n := counted(pods)
			if n > max(most, 1) {
				c.Log(n, tell(pods))
			}
			most = max(most, n)
			return false
		})
	}()
	return func() int {
		cancel()
		<-done
		return most
	}
}

// tell says of every pod what decides whether it is ready.
func tell(pods []*corev1.Pod) string {
	var b strings.Builder
	for _, p := range pods {
		fmt.Fprintf(&b, "\n%s: ready %t, version %s, going %t, resource version %s, generation %d seen %d", p.Name, harness.IsPodReady(p),
			p.Annotations["etcd.version"], p.DeletionTimestamp != nil, p.ResourceVersion, p.Generation, p.Status.ObservedGeneration)
		for _, s := range p.Status.ContainerStatuses {
			fmt.Fprintf(&b, ", container %s ready %t, %+v", s.ContainerID, s.Ready, s.State)
		}
		for _, cond := range p.Status.Conditions {
			fmt.Fprintf(&b, ", %s %s since %s", cond.Type, cond.Status, cond.LastTransitionTime.Format(time.TimeOnly))
		}
	}
	return b.String()
}

// walk is the way of a cluster through every minor version that has an image.
var walk = []string{"3.4.23", "3.5.35", etcdVersion, "3.7.3"}

// TestVersionWalk brings a cluster from the oldest version to the newest under a client that
// writes all the time. A step that is not allowed is rejected at once.
func TestVersionWalk(t *testing.T) {
	harness.RequireNightly(t)
	t.Parallel()
	s := start(t)
	// With few entries between snapshots the log is soon led past what older members wrote.
	c := s.create("walks", 3, walk[0], withVolumes, "\n  etcd: {snapshotCount: 1000}")
	data, ids := c.fill(), c.ids()
	w := c.write()
	for i, to := range walk[1:] {
		from := walk[i]
		if i+2 < len(walk) {
			s.contains(s.rejected("", patchVersion("walks", walk[i+2])...), "skip a minor version", from)
		}
		c.step(from, to)
		s.contains(s.rejected("", patchVersion("walks", from)...), "must not be below", "restore a backup")
		if now := c.ids(); !maps.Equal(now, ids) {
			t.Errorf("at %s the members are %x, not %x", to, now, ids)
		}
		c.holds(data)
	}
	report := c.stopped(w)
	if report.Failed > report.Sent/100 {
		t.Errorf("%d of %d writes failed", report.Failed, report.Sent)
	}
	if report.LongestGap > 5*time.Second {
		t.Errorf("nothing was acknowledged for %v", report.LongestGap)
	}
	// The newest version starts again on what older ones have left, too.
	c.kill()
	c.settle(3)
	c.must(c.members.Kept(c.ctx(), report), "after all members were killed")
	c.holds(data)
}

// step moves a cluster from one version to another and checks what the status and the events
// report.
func (c *cluster) step(from, to string) {
	c.Helper()
	begun := time.Now()
	c.kubectl(patchVersion(c.name, to)...)
	object := c.await(c.ctx(), "the status to report the step to "+to, func(o *clusterObject) bool {
		return o.Status.CurrentVersion == from && o.Status.TargetVersion == to &&
			is(o, v1beta2.ClusterConditionUpgrading, corev1.ConditionTrue)
	})
	c.contains(condition(object, v1beta2.ClusterConditionUpgrading).Message, from, to)
	object = c.await(c.ctx(), "version "+to, func(o *clusterObject) bool {
		return isSettled(o, 3) && o.Status.CurrentVersion == to && o.Status.TargetVersion == ""
	})
	c.Logf("from %s to %s in %v", from, to, time.Since(begun).Round(10*time.Millisecond))
	c.are(object, map[v1beta2.ClusterConditionType]corev1.ConditionStatus{
		v1beta2.ClusterConditionAvailable: corev1.ConditionTrue,
		v1beta2.ClusterConditionDegraded:  corev1.ConditionFalse,
		v1beta2.ClusterConditionUpgrading: corev1.ConditionFalse,
	})
	told := c.kubectl("get", "events", "--field-selector=reason=MemberUpgraded,involvedObject.name="+c.name, "-o", "jsonpath={.items[*].message}")
	for name, a := range c.responses() {
		if a.Version != to {
			c.Errorf("member %s runs %s, not %s", name, a.Version, to)
		}
		c.contains(told, "Member "+name+" restarts with version "+to)
	}
}

// kill ends the processes of all members at once, and waits until they are back.
func (c *cluster) kill() {
	c.Helper()
	before := map[string]string{}
	for _, p := range c.members.Live() {
		before[p.Name] = p.Status.ContainerStatuses[0].ContainerID
		c.must(harness.Signal(p, "etcd", syscall.SIGKILL), "kill a member")
	}
	c.must(c.members.Pods.Await(c.ctx(), func(pods []*corev1.Pod) bool {
		return !slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
			return !harness.IsPodReady(p) || p.Status.ContainerStatuses[0].ContainerID == before[p.Name]
		})
	}), "all members to be ready again")
}

// TestMinorUpgrade moves clusters up one minor version, which is as far as one step
// may go.
func TestMinorUpgrade(t *testing.T) {
	t.Parallel()
	s := start(t)
	for name, step := range map[string]struct{ from, to, skip, back string }{
		"v35": {"3.5.35", etcdVersion, "3.7.3", "3.5.35"},
		"v36": {etcdVersion, "3.7.3", "", etcdVersion},
	} {
		c := s.create(name, 3, step.from)
		data := c.fill()
		if step.skip != "" {
			s.contains(s.rejected("", patchVersion(name, step.skip)...), "skip a minor version")
		}
		s.kubectl(patchVersion(name, step.to)...)
		c.await(s.ctx(), "version "+step.to, func(object *clusterObject) bool {
			return isSettled(object, 3) && object.Status.CurrentVersion == step.to
		})
		c.must(c.members.AwaitVoters(s.ctx(), 3), "after the upgrade to %s", step.to)
		c.holds(data)
		s.contains(s.rejected("", patchVersion(name, step.back)...), "must not be below")
		s.kubectl("delete", "etcd", name)
	}
}

func patchVersion(name, version string) []string {
	return []string{"patch", "etcd", name, "--type=merge", "-p", `{"spec":{"version":"` + version + `"}}`}
}

// TestUpgradeReverted asks for a version that has no image. One member is lost to
// that, not more, and naming the old version again brings it back.
func TestUpgradeReverted(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("stuck", 3, etcdVersion)
	data := c.fill()
	w := c.write()
	s.kubectl(patchVersion("stuck", "3.6.99")...)
	c.await(s.ctx(), "the upgrade to get stuck", func(object *clusterObject) bool {
		return len(object.Status.Members.Unready) == 1 && object.Status.BlockedBy != nil &&
			is(object, "Available", corev1.ConditionTrue) && is(object, "Degraded", corev1.ConditionTrue)
	})
	s.kubectl(patchVersion("stuck", etcdVersion)...)
	c.settle(3)
	c.stopped(w)
	c.holds(data)
}
