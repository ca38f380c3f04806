// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	// beforeLearners is the last release of etcd whose members all vote from the start.
	beforeLearners = "3.3.27"
	// withLearners is the release after it that has an image where Debian has it.
	withLearners = "3.4.23"
)

// TestEtcdWithoutLearners brings a cluster of an etcd without learners through the ordinary
// events of its life, and to an etcd that has them, under a client that writes all the time.
func TestEtcdWithoutLearners(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("early", 3, beforeLearners)
	data := c.fill()
	c.tellsAll(beforeLearners)
	w := c.write()

	s.kubectl("scale", "etcdcluster/early", "--replicas=5")
	c.settle(5)
	c.shrinkKeepingLeader(3)
	target := c.follower()
	s.kubectl("delete", "pod", target.Pod.Name, "--wait=false", "--force", "--grace-period=0")
	c.readyPodsServe(target.Pod)
	c.await(s.ctx(), "the lost member to be replaced", func(object *clusterObject) bool {
		return isSettled(object, 3) && !slices.Contains(object.Status.Members.Ready, target.Pod.Name)
	})
	ids := c.ids()
	if slices.Contains(slices.Collect(maps.Values(ids)), target.ID) {
		t.Errorf("the member without its data came back under its old ID %x", target.ID)
	}
	before := c.leader().Pod.Name
	if moved := post[v1beta2.EtcdClusterLeaderMove](c, "moveleader", "{}"); moved.Status.Leader == before || c.leader().Pod.Name != moved.Status.Leader {
		t.Errorf("%s has led, and the response is %+v", before, moved.Status)
	}
	c.tellsAll(beforeLearners)
	c.holds(data)

	if s.hasImage(withLearners) {
		c.step(beforeLearners, withLearners)
		if now := c.ids(); !maps.Equal(now, ids) {
			t.Errorf("at %s the members are %x, not %x", withLearners, now, ids)
		}
		c.tellsAll(withLearners)
		// From now on a joining member does not vote before it has caught up.
		s.kubectl("scale", "etcdcluster/early", "--replicas=4")
		c.settle(4)
		s.contains(s.kubectl("get", "events", "--field-selector=reason=MemberPromoted,involvedObject.name=early", "-o", "name"), "event")
	} else {
		t.Logf("there is no image of %s: the upgrade is left out", withLearners)
	}
	report := c.stopped(w)
	c.holds(data)
	// A write fails after 2 s, on a busy machine also while the cluster serves all the time.
	if most := report.Sent / 10; report.Failed > most {
		t.Errorf("%d of %d writes failed, more than %d: %v", report.Failed, report.Sent, most, report.Errors)
	}
	if report.LongestGap > 5*time.Second {
		t.Errorf("nothing was acknowledged for %v", report.LongestGap)
	}
}

// tellsAll fails the test unless the status, /health and /members say of every member what
// etcd says itself.
func (c *cluster) tellsAll(version string) {
	c.Helper()
	leader := c.leader()
	object := c.await(c.within(time.Minute), "the status to report the leader", func(o *clusterObject) bool {
		return slices.ContainsFunc(o.Status.MemberStatuses, func(m v1beta2.MemberStatus) bool {
			return m.Name == leader.Pod.Name && m.Role == v1beta2.MemberRoleLeader
		})
	})
	c.are(object, map[v1beta2.ClusterConditionType]corev1.ConditionStatus{
		v1beta2.ClusterConditionAvailable: corev1.ConditionTrue,
		v1beta2.ClusterConditionDegraded:  corev1.ConditionFalse,
	})
	if object.Status.CurrentVersion != version || len(object.Status.MemberStatuses) != 3 || ptr.Deref(object.Status.Tolerance, 9) != 1 {
		c.Errorf("unexpected status:\n%s", describe(object))
	}
	for _, m := range object.Status.MemberStatuses {
		if m.Version != version || m.DBSize == 0 || m.Role != v1beta2.MemberRoleFollower && m.Name != leader.Pod.Name {
			c.Errorf("unexpected member %+v", m)
		}
	}
	health := c.awaitVerdict(v1beta2.VerdictHealthy)
	if health.Leader != leader.Pod.Name || health.Voters != 3 || health.Serving != 3 || ptr.Deref(health.Tolerance, 9) != 1 {
		c.Errorf("unexpected health %+v", health)
	}
	for i := range health.Members {
		if m := &health.Members[i]; !m.Responded || m.Version != version || m.DBSize == 0 || m.Quota == 0 || m.RaftIndex == 0 {
			c.Errorf("unexpected health of a member: %+v", m)
		}
	}
	if members := look[v1beta2.EtcdClusterMembers](c, "members"); !members.Agreed || !members.Confirmed || len(members.Members) != 3 {
		c.Errorf("unexpected members %+v", members)
	}
}

// hasImage is true if the nodes have the image of a version of etcd.
func (s *scenario) hasImage(version string) bool {
	s.Helper()
	nodes, err := env.Kube.CoreV1().Nodes().List(s.ctx(), metav1.ListOptions{})
	s.must(err, "list the nodes")
	reference := v1beta2.DefaultRepository + ":v" + version
	return !slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool {
		return !slices.ContainsFunc(n.Status.Images, func(i corev1.ContainerImage) bool { return slices.Contains(i.Names, reference) })
	})
}

// TestRecoveryOfEtcdWithoutLearners restores a backup of an etcd whose program cannot raise the
// revision in place, goes on from a survivor and has its database filled, with certificates
// and volumes. Of two members the loss of one is the loss of the quorum.
func TestRecoveryOfEtcdWithoutLearners(t *testing.T) {
	harness.RequireNightly(t)
	t.Parallel()
	s := startFor(t, 6*time.Minute) // a restore, a recovery, a full database and a defragmentation
	s.volume()
	c := s.cluster("sealed")
	c.secure("sealed-client-tls", "tls.crt", "tls.key", "ca.crt")
	s.apply(manifest("sealed", 2, beforeLearners, withAutoTLS, withVolumes, smallQuota))
	c.are(c.settle(2), map[v1beta2.ClusterConditionType]corev1.ConditionStatus{
		v1beta2.ClusterConditionCertificatesValid: corev1.ConditionTrue,
		v1beta2.ClusterConditionAvailable:         corev1.ConditionTrue,
	})
	checkEncrypted(c)
	data := c.fill()
	s.apply(backupManifest("once", "  etcdCluster: {name: sealed}\n  compression: Zstd\n  verify: Restore"+toVolume))
	backup := s.awaitBackup(s.ctx(), "once", "success", hasSucceeded)
	if backup.Status.EtcdVersion != beforeLearners || !backup.Status.Verified {
		t.Errorf("the backup is %+v", backup.Status)
	}
	c.spoil(data)

	s.apply(restoreManifest("bumped", "sealed", "  backup: {name: once}\n  revisionBump: 1000"))
	s.rejectedRestore("bumped", "Unsupported", "revisionBump", beforeLearners)
	s.apply(restoreManifest("back", "sealed", "  backup: {name: once}"))
	r := s.restored("back")
	c.settle(2)
	c.holds(data)
	if got := c.read("data/more"); r.Status.Revision != backup.Status.EtcdRevision || len(got.Kvs) != 0 || got.Header.Revision < r.Status.Revision {
		t.Errorf("after the restore of revision %d: %+v", r.Status.Revision, got)
	}

	clusterID, survivor := c.clusterID(), c.leader().Pod
	c.destroy(survivor)
	c.awaitLoss(survivor.Name)
	plan, err := c.recoverNow(metav1.DryRunAll)
	s.must(err, "ask for the plan")
	s.contains(plan.Status.ExpectedLoss, fmt.Sprintf("etcd %s cannot raise the revision", beforeLearners))
	_, err = c.recoverNow()
	s.must(err, "ask for the recovery")
	c.recovered(2)
	c.holds(data)
	if c.clusterID() == clusterID {
		t.Error("the cluster has the ID that it had before")
	}
	c.fullAndBack()
	c.holds(data)
}
