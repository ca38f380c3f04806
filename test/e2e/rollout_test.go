// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// usualGap is how long nothing may be acknowledged while members restart one after the other. It has room for two elections
// on a machine with two cores.
const usualGap = 10 * time.Second

// declaration changes resources, environment and an option of etcd at once.
const declaration = `{"spec":{
	"pod":{"resources":{"requests":{"cpu":"7m"}},"etcdEnv":[{"name":"GOGC","value":"77"}],"labels":{"team":"a"}},
	"etcd":{"snapshotCount":7000}}}`

// isChanged is true for a pod that was made from declaration.
func isChanged(p *corev1.Pod) bool {
	c := p.Spec.Containers[0]
	return c.Resources.Requests.Cpu().String() == "7m" && p.Labels["team"] == "a" &&
		slices.Contains(c.Env, corev1.EnvVar{Name: "GOGC", Value: "77"}) && slices.Contains(c.Command, "--snapshot-count=7000")
}

func (c *cluster) patch(patch string) {
	c.Helper()
	c.kubectl("patch", "etcd", c.name, "--type=merge", "-p", patch)
}

// rolled waits until every pod matches and the cluster is at rest.
func (c *cluster) rolled(n int, matches func(*corev1.Pod) bool) {
	c.Helper()
	c.must(c.members.Pods.Await(c.ctx(), func(pods []*corev1.Pod) bool {
		return len(pods) == n && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return !matches(p) || !harness.IsPodReady(p) })
	}), "wait for the pods of %s to be as declared", c.name)
	c.settle(n)
}

// uids returns the UIDs of the live pods by their names.
func (c *cluster) uids() map[string]types.UID {
	uids := map[string]types.UID{}
	for _, p := range c.members.Live() {
		uids[p.Name] = p.UID
	}
	return uids
}

// same fails the test unless the members are those of before, and their pods are
// or are not.
func (c *cluster) same(ids map[string]uint64, uids map[string]types.UID, pods bool) {
	c.Helper()
	now, live := c.ids(), c.uids()
	for name, id := range ids {
		if now[name] != id {
			c.Errorf("member %s was %x and is %x", name, id, now[name])
		}
		if (live[name] == uids[name]) != pods {
			c.Errorf("the pod of member %s is the same: %t", name, live[name] == uids[name])
		}
	}
}

// TestRollout changes what pods must be while a client writes. Members with volumes keep
// their identity.
func TestRollout(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("rolled", 3, etcdVersion, withVolumes)
	data, ids, uids := c.fill(), c.ids(), c.uids()
	pvcs := s.kubectl("get", "pvc", "-o", "jsonpath={.items[*].metadata.uid}")
	w := c.write()
	down := c.followDown()
	from := time.Now()
	c.patch(declaration)
	c.rolled(3, isChanged)
	t.Logf("rolled in %v", time.Since(from).Round(10*time.Millisecond))
	c.same(ids, uids, false)

	// Asked to restart they do so once more, without any change.
	uids = c.uids()
	s.kubectl("annotate", "etcd", "rolled", "etcd.database.coreos.com/restarted-at=now")
	c.rolled(3, func(p *corev1.Pod) bool { return p.Annotations["etcd.database.coreos.com/restarted-at"] == "now" })
	c.same(ids, uids, false)
	if n := down(); n > 1 {
		t.Errorf("%d members were down at the same time", n)
	}
	report := c.stopped(w)
	if report.LongestGap > usualGap {
		t.Errorf("nothing was acknowledged for %v", report.LongestGap)
	}
	c.holds(data)
	if now := s.kubectl("get", "pvc", "-o", "jsonpath={.items[*].metadata.uid}"); now != pvcs {
		t.Errorf("the volumes are %s, not %s", now, pvcs)
	}
	if n := count(c.reasons(), "MemberRestarted"); n < 3 { // the second one counts up the event of the first
		t.Errorf("%d events tell of restarts: %v", n, c.reasons())
	}
}

// followDown counts how many members are not ready at the same time, pods that are
// missing among them.
func (c *cluster) followDown() func() int {
	c.Helper()
	size := len(c.members.Live())
	serving := served{}
	return c.follow(func(pods []*corev1.Pod) int {
		up := 0
		for _, p := range pods {
			if !serving.isStopped(p) {
				up++
			}
		}
		return size - up
	})
}

func count(list []string, what string) int {
	n := 0
	for _, s := range list {
		if s == what {
			n++
		}
	}
	return n
}

// TestRolloutWithoutVolumes replaces the members one by one: the data goes with the pods, so
// a new member joins before an old one is removed.
func TestRolloutWithoutVolumes(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("replaced", 3, etcdVersion)
	data, ids := c.fill(), c.ids()
	w := c.write()
	down := c.followDown()
	from := time.Now()
	c.patch(declaration)
	c.rolled(3, isChanged)
	t.Logf("rolled in %v", time.Since(from).Round(10*time.Millisecond))
	if n := down(); n > 0 {
		t.Errorf("%d members were missing", n)
	}
	report := c.stopped(w)
	if report.LongestGap > 5*time.Second {
		t.Errorf("nothing was acknowledged for %v", report.LongestGap)
	}
	c.holds(data)
	for name := range c.ids() {
		if ids[name] != 0 {
			t.Errorf("member %s was not replaced", name)
		}
	}
	if n := count(c.reasons(), "MemberReplaced"); n < 3 {
		t.Errorf("%d events tell of replacements: %v", n, c.reasons())
	}
}

// TestRolloutSmall changes clusters that lose their quorum without one member. On volumes the
// change causes a short outage, which the events report; without volumes another member joins
// first.
func TestRolloutSmall(t *testing.T) {
	t.Parallel()
	s := start(t)
	volume := s.create("one", 1, previousVersion, withVolumes)
	memory := s.create("bare", 1, previousVersion)
	two := s.create("two", 2, previousVersion)
	for _, c := range []*cluster{volume, memory, two} {
		data, ids, uids, size := c.fill(), c.ids(), c.uids(), len(c.ids())
		s.kubectl(patchVersion(c.name, etcdVersion)...)
		c.rolled(size, func(p *corev1.Pod) bool { return p.Annotations["etcd.version"] == etcdVersion })
		c.await(s.ctx(), "the new version", func(o *clusterObject) bool { return o.Status.CurrentVersion == etcdVersion })
		c.same(ids, uids, true)
		c.holds(data)
		s.contains(s.kubectl("get", "events", "--field-selector=reason=MemberUpgraded,involvedObject.name="+c.name, "-o", "jsonpath={.items[*].message}"),
			"the cluster has no quorum until then")
		c.patch(declaration)
		c.rolled(size, isChanged)
		c.holds(data)
		if c == volume {
			c.same(ids, uids, false)
		}
	}
}

// TestRolloutReverted declares a flag that etcd does not know. A cluster of one member
// is down until that is taken back, and says so.
func TestRolloutReverted(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("mistaken", 1, etcdVersion, withVolumes)
	data, ids := c.fill(), c.ids()
	c.patch(`{"spec":{"etcd":{"extraArgs":["--no-such-flag=1"]}}}`)
	c.await(s.ctx(), "the mistake to show", func(o *clusterObject) bool {
		return is(o, "Available", corev1.ConditionFalse) && is(o, "QuorumLost", corev1.ConditionTrue) && o.Status.BlockedBy != nil
	})
	c.patch(`{"spec":{"etcd":null}}`)
	c.settle(1)
	c.holds(data)
	c.same(ids, c.uids(), true)
}
