// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// TestHungDisks: disks of members take no writes, in clusters beside each other.
func TestHungDisks(t *testing.T) {
	env.RequireLocal(t, harness.Nodes)
	for name, test := range map[string]func(*testing.T){
		"log":        func(t *testing.T) { hungDisksAreNoticed(t, ".wal", "NotServing") },
		"database":   func(t *testing.T) { hungDisksAreNoticed(t, "/db", "Unresponsive") },
		"everything": func(t *testing.T) { hungDisksAreNoticed(t, "", "NotServing", "Unresponsive") },
		"scale":      scaleBesideHungDisks,
		"replace":    replaceOnHungDisk,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// hungDisksAreNoticed: the disks of two members of five take no writes. The status says that the
// two do not serve, with one of the reasons. A member whose log waits for the disk still responds
// with its status and a leader; a member whose database waits responds with nothing. Where both
// files are on the disk, the database waits only if it had something to write when the log began
// to wait: either reason is right.
func hungDisksAreNoticed(t *testing.T, suffix string, reasons ...string) {
	t.Helper()
	s := startFor(t, 4*time.Minute)
	c := s.create("slab", 5, etcdVersion)
	w := c.write()
	hung, resume := c.hangDisks(2, suffix)
	from := time.Now()
	object := c.await(s.within(noticeWithin), "both members to be "+strings.Join(reasons, " or "), func(object *clusterObject) bool {
		return countReason(object, hung, reasons...) == 2
	})
	t.Logf("%s after %v", strings.Join(reasons, " or "), time.Since(from).Round(10*time.Millisecond))
	c.are(object, map[v1beta2.ClusterConditionType]corev1.ConditionStatus{
		v1beta2.ClusterConditionAvailable:  corev1.ConditionTrue,
		v1beta2.ClusterConditionDegraded:   corev1.ConditionTrue,
		v1beta2.ClusterConditionQuorumLost: corev1.ConditionFalse,
	})
	if suffix == ".wal" {
		s.contains(c.awaitVerdict(v1beta2.VerdictDegraded).Message, "member "+hung[0]+" responds and does not complete a linearizable read")
	}
	resume()
	if report := c.stopped(w); report.LongestGap > 5*time.Second {
		t.Errorf("nothing was acknowledged for %v", report.LongestGap)
	}
}

// scaleBesideHungDisks: the size of a cluster changes from five to three right after the
// disks of two members hang, before anything has noticed that. These two are removed: any
// other choice would take the quorum.
func scaleBesideHungDisks(t *testing.T) {
	s := startFor(t, 6*time.Minute)
	c := s.create("slate", 5, etcdVersion)
	data := c.fill()
	w := c.write()
	hung, resume := c.hangDisks(2, ".wal")
	from := time.Now()
	if _, err := env.Kubectl(s.ctx(), harness.Command{Args: []string{"-n", s.namespace, "scale", "etcdcluster/slate", "--replicas=3"}}); err != nil {
		// On a busy machine the status may be quicker. Then members go one at a time.
		t.Logf("one member at a time: %v", err)
		s.kubectl("scale", "etcdcluster/slate", "--replicas=4")
		c.await(s.within(2*time.Minute), "four members", func(object *clusterObject) bool { return len(object.Status.MemberStatuses) == 4 })
		s.kubectl("scale", "etcdcluster/slate", "--replicas=3")
	}
	object := c.await(s.within(3*time.Minute), "three members", func(object *clusterObject) bool { return isSettled(object, 3) })
	t.Logf("three members after %v", time.Since(from).Round(10*time.Millisecond))
	for i := range object.Status.MemberStatuses {
		if m := object.Status.MemberStatuses[i].Name; slices.Contains(hung, m) {
			t.Errorf("%s, whose disk hangs, stays a member:\n%s", m, describe(object))
		}
	}
	resume()
	if report := c.stopped(w); report.LongestGap > 5*time.Second {
		t.Errorf("nothing was acknowledged for %v", report.LongestGap)
	}
	c.holds(data)
}

// hangDisks lets the disks of some members that do not lead take no writes of open files with a
// suffix, until resume or the end of the test.
func (c *cluster) hangDisks(count int, suffix string) (hung []string, resume func()) {
	c.Helper()
	leader := c.leader()
	var disks []*harness.Disk
	for _, p := range c.members.Live() {
		if p.Name == leader.Pod.Name || len(hung) == count {
			continue
		}
		disk, err := harness.HangDisk(c.ctx(), p, "etcd", suffix)
		c.must(err, "hang the disk of %s", p.Name)
		disks, hung = append(disks, disk), append(hung, p.Name)
	}
	resume = func() {
		for _, disk := range disks {
			c.must(disk.Resume(), "resume a disk")
		}
	}
	c.Cleanup(resume)
	return hung, resume
}

// countReason counts the members among names whose status gives one of the reasons.
func countReason(object *clusterObject, names []string, reasons ...string) int {
	n := 0
	for i := range object.Status.MemberStatuses {
		if m := &object.Status.MemberStatuses[i]; slices.Contains(reasons, m.Reason) && slices.Contains(names, m.Name) {
			n++
		}
	}
	return n
}
