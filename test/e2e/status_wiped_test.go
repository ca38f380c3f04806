// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// dataMount is where members keep their data.
const dataMount = "/var/etcd"

// wipe empties the disks of members whose pods and PVCs stay.
func (c *cluster) wipe(targets ...*corev1.Pod) {
	c.Helper()
	c.must(harness.Wipe("etcd", dataMount, targets...), "empty the disks of %d members", len(targets))
}

// seedPod returns the pod that has started the cluster.
func (c *cluster) seedPod() *corev1.Pod {
	c.Helper()
	for _, p := range c.members.Live() {
		if slices.ContainsFunc(p.Spec.Containers[0].Command, func(arg string) bool { return strings.HasPrefix(arg, "--initial-cluster-token=") }) {
			return p
		}
	}
	c.Fatal("the bootstrap member does not exist any more")
	return nil
}

// has fails the test unless a member has the data in its own database, whether it can
// reach the others or not.
func (c *cluster) has(pod *corev1.Pod, data harness.Data) {
	c.Helper()
	client, err := c.members.Client(pod)
	c.must(err, "connect to %s", pod.Name)
	r, err := client.Get(c.within(10*time.Second), "data/", clientv3.WithPrefix(), clientv3.WithSerializable())
	c.must(err, "read from %s", pod.Name)
	found := harness.Data{}
	for _, kv := range r.Kvs {
		found[string(kv.Key)] = string(kv.Value)
	}
	if !maps.Equal(found, data) {
		c.Errorf("%s has %d of %d keys", pod.Name, len(found), len(data))
	}
}

// tryEmptyDisk: a member whose disk was emptied under it has forgotten what it has
// acknowledged. It must not serve as if nothing had been, nor vote. The first member of a
// cluster could even start another one of the same ID.
func tryEmptyDisk(t *testing.T) {
	s := start(t)
	c := s.create("wiped", 3, etcdVersion)
	data := c.fill()
	// In this order: all first pods may be of the same second, so that any of them joined last.
	for _, kind := range []struct {
		what   string
		choose func() *corev1.Pod
	}{
		{"the bootstrap member", c.seedPod},
		{"one that joined last", func() *corev1.Pod {
			live := c.members.Live()
			return slices.MaxFunc(live, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
		}},
	} {
		what, target := kind.what, kind.choose()
		id, others := c.ids()[target.Name], slices.DeleteFunc(c.members.Live(), func(p *corev1.Pod) bool { return p.Name == target.Name })
		c.wipe(target)
		missed := func(object *clusterObject) bool {
			return slices.Equal(object.Status.Members.Unready, []string{target.Name}) && len(object.Status.Members.Ready) == 2 &&
				is(object, v1beta2.ClusterConditionDegraded, corev1.ConditionTrue) && is(object, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue)
		}
		c.await(s.within(noticeWithin), what+" to be missed", missed)
		c.keeps(10*time.Second, "that "+what+" does not serve", func(object *clusterObject) bool { return !isDown(object, target.Name) })
		if client, err := c.members.Client(target); err == nil {
			if r, err := client.Get(s.within(time.Second), "data/", clientv3.WithPrefix(), clientv3.WithSerializable()); err == nil {
				t.Errorf("%s serves without its data: %d keys", what, len(r.Kvs))
			}
		}
		for _, p := range others {
			c.has(p, data)
		}
		s.kubectl("delete", "pod", target.Name, "--wait=false")
		c.await(s.ctx(), "another member in its place", func(object *clusterObject) bool {
			return isSettled(object, 3) && !slices.Contains(object.Status.Members.Ready, target.Name)
		})
		c.settle(3)
		if slices.Contains(slices.Collect(maps.Values(c.ids())), id) {
			t.Errorf("%s came back as member %x on an empty disk", what, id)
		}
		c.holds(data)
	}
}

// tryEmptyVolumes: of three members two have lost what is on their volumes, which are
// still there. They must not be taken for the members that they were, and the data goes on
// from the third one.
func tryEmptyVolumes(t *testing.T) {
	s := start(t)
	c := s.create("emptied-two", 3, etcdVersion, withVolumes)
	data := c.fill()
	survivor := c.leader().Pod
	c.wipe(slices.DeleteFunc(c.members.Live(), func(p *corev1.Pod) bool { return p.Name == survivor.Name })...)
	c.await(s.within(noticeWithin), "the loss of the quorum in every field", isReportedLost)
	c.keeps(restWithin, "that the quorum is lost", func(object *clusterObject) bool { return !isReportedLost(object) })
	c.has(survivor, data)
	_, err := c.recoverNow()
	s.must(err, "ask for the recovery")
	c.recovered(3)
	c.holds(data)
}

// trySpelledVersion: a version may be written with a leading v, and means the same.
func trySpelledVersion(t *testing.T) {
	s := start(t)
	c := s.create("spelled", 1, "v"+previousVersion)
	data, uids := c.fill(), c.uids()
	runs := func(version string) {
		t.Helper()
		object := c.await(s.ctx(), "version "+version+" to be reported", func(object *clusterObject) bool {
			return isSettled(object, 1) && object.Status.CurrentVersion == version && object.Status.TargetVersion == ""
		})
		for name, a := range c.responses() {
			if a.Version != version {
				t.Errorf("%s runs %s, and the status says\n%s", name, a.Version, describe(object))
			}
		}
		c.holds(data)
	}
	runs(previousVersion)
	s.kubectl(patchVersion(c.name, previousVersion)...)
	runs(previousVersion)
	for _, p := range c.members.Live() {
		if p.UID != uids[p.Name] || p.Status.ContainerStatuses[0].RestartCount > 0 {
			t.Errorf("%s was restarted for the same version", p.Name)
		}
	}
	s.kubectl(patchVersion(c.name, "v"+etcdVersion)...)
	runs(etcdVersion)
}
