// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// minorBefore is the last patch of the minor version before that of etcdVersion.
const minorBefore = "3.5.35"

// TestLinearizableSecure lets clients that prove themselves read, write and swap while
// the CA is replaced, the cluster moves to the next minor version, and sleeps.
func TestLinearizableSecure(t *testing.T) {
	harness.RequireNightly(t)
	t.Parallel()
	s := start(t)
	c := s.cluster("proven")
	c.secure("proven-client-tls", "tls.crt", "tls.key", "ca.crt")
	s.apply(manifest("proven", 3, minorBefore, withAutoTLS+withVolumes))
	c.settle(3)
	clients, step := c.clients()
	w := c.write()
	step("another CA, and the old one dropped", func() {
		c.rotate("1")
		c.settle(3)
	})
	step("the next minor version", func() {
		s.kubectl(patchVersion("proven", etcdVersion)...)
		c.await(s.ctx(), "the version", func(object *clusterObject) bool {
			return isSettled(object, 3) && object.Status.CurrentVersion == etcdVersion
		})
	})
	step("asleep, and awake again", func() {
		s.kubectl("scale", "etcdcluster/proven", "--replicas=0")
		c.await(s.ctx(), "hibernation", func(object *clusterObject) bool { return object.Status.Phase == v1beta2.ClusterPhaseHibernated })
		s.kubectl("scale", "etcdcluster/proven", "--replicas=3")
		c.settle(3)
	})
	c.stopped(w)
	c.explained(clients)
}

// TestLinearizableRecovery lets clients read, write and swap while the quorum is lost and the
// cluster recovers from the member that led. The leader has applied everything that was
// acknowledged, so nothing of that may be lost, and the history continues.
func TestLinearizableRecovery(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("onwards", 3, etcdVersion)
	clients, step := c.clients()
	w := c.write()
	step("nothing happens", func() {
		s.until(s.within(30*time.Second), "a history", func() bool { return clients.History.Responses() > 200 })
	})
	step("the quorum is lost, and the cluster goes on", func() {
		survivor := c.leader().Pod
		c.destroy(survivor)
		c.awaitLoss(survivor.Name)
		_, err := c.recoverNow()
		s.must(err, "ask for the recovery")
		c.recovered(3)
	})
	before := clients.History.Responses()
	step("afterwards", func() {
		s.until(s.within(30*time.Second), "the history to go on", func() bool { return clients.History.Responses() > before+200 })
	})
	c.stopped(w)
	c.explained(clients)
	c.bumped()
}

// TestLinearizableDelete lets clients read, write and swap while their cluster is deleted and
// a new cluster is created under its name. What the old cluster acknowledged was true to its
// end, and the new cluster begins with nothing: no client gets responses from a mixture of
// both.
func TestLinearizableDelete(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("reborn", 3, etcdVersion)
	old := c.clusterID()
	clients, step := c.clients()
	history := func() {
		before := clients.History.Responses()
		s.until(s.within(30*time.Second), "a history", func() bool { return clients.History.Responses() > before+200 })
	}
	step("nothing happens", history)
	step("it is deleted", func() { s.kubectl("delete", "etcd/reborn", "--timeout=60s") })
	step("a new cluster has its name", func() {
		s.apply(manifest("reborn", 3, etcdVersion))
		c.settle(3)
	})
	step("afterwards", history)
	young := c.clusterID()

	s.must(clients.Stop(), "stop the clients")
	s.must(clients.History.Succeeds(old, young), "which cluster responded")
	for name, id := range map[string]uint64{"old": old, "new": young} {
		part := clients.History.Of(id)
		t.Logf("the %s cluster: %v", name, part)
		s.must(part.Check(decisionTime), "the responses of the %s cluster", name)
	}
}

// rotate replaces the CA of a cluster with certificates of its own, and waits
// until no member trusts the old one any more.
func (c *cluster) rotate(request string) {
	c.Helper()
	before := c.get()
	c.kubectl("annotate", "--overwrite", "etcd/"+c.name, "etcd.database.coreos.com/rotate-ca="+request, "etcd.database.coreos.com/drop-old-ca="+request)
	pods := c.uids()
	c.await(c.ctx(), "every member to trust only the new CA", func(object *clusterObject) bool {
		now, _ := issued(object)
		was, _ := issued(before)
		valid := condition(object, v1beta2.ClusterConditionCertificatesValid)
		return now[v1beta2.CertificateUseCA] != was[v1beta2.CertificateUseCA] && isSettled(object, len(pods)) &&
			valid.Status == corev1.ConditionTrue && valid.Reason == "AllUsable" && c.isRenewed(pods)
	})
}
