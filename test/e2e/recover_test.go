// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// revisionBump is what a recovery adds to the revision at least.
const revisionBump = 1_000_000_000

// destroy takes pods and volumes of all members but one away, at once.
func (c *cluster) destroy(keep *corev1.Pod) {
	c.Helper()
	var pods []string
	for _, p := range c.members.Live() {
		if p.Name != keep.Name {
			c.hang(p)
			pods = append(pods, p.Name)
		}
	}
	c.kubectl(append([]string{"delete", "pvc", "--wait=false", "--ignore-not-found"}, pods...)...)
	c.kubectl(append([]string{"delete", "pods", "--force", "--grace-period=0"}, pods...)...)
}

// awaitLoss waits until the status reports that the quorum is lost, and which members survive.
func (c *cluster) awaitLoss(survivor string) *clusterObject {
	c.Helper()
	from := time.Now()
	object := c.await(c.within(noticeWithin), "the status to report the loss of the quorum", func(object *clusterObject) bool {
		return is(object, v1beta2.ClusterConditionQuorumLost, corev1.ConditionTrue) && slices.ContainsFunc(object.Status.MemberStatuses,
			func(m v1beta2.MemberStatus) bool { return m.Name == survivor && m.RaftIndex > 0 })
	})
	c.Logf("the status reported the loss and the survivor after %v", time.Since(from).Round(10*time.Millisecond))
	return object
}

// recoverNow requests a recovery. A survivor that responds late on a busy machine, and a status that is written at the same
// moment, reject the request for a moment, so that it is repeated. If an earlier attempt has begun a recovery, it returns that.
func (c *cluster) recoverNow(dryRun ...string) (*v1beta2.EtcdClusterRecovery, error) {
	c.Helper()
	var made *v1beta2.EtcdClusterRecovery
	var err error
	tried := false
	met(c.within(noticeWithin), func() bool {
		made, err = c.requestRecovery(dryRun...)
		if tried && len(dryRun) == 0 && apierrors.IsConflict(err) && strings.Contains(err.Error(), "a recovery is in progress") {
			made, err = &v1beta2.EtcdClusterRecovery{Status: *c.get().Status.Recovery}, nil
		}
		tried = true
		return !apierrors.IsConflict(err)
	})
	return made, err
}

// requestRecovery requests a recovery once.
func (c *cluster) requestRecovery(dryRun ...string) (*v1beta2.EtcdClusterRecovery, error) {
	return env.Etcd.EtcdV1beta2().EtcdClusters(c.namespace).Recover(c.ctx(), c.name, &v1beta2.EtcdClusterRecovery{}, metav1.CreateOptions{DryRun: dryRun})
}

// recovered waits until the cluster has recovered from a survivor with n members.
func (c *cluster) recovered(n int) *clusterObject {
	c.Helper()
	from := time.Now()
	c.await(c.within(4*time.Minute), "a linearizable read to be served again", func(object *clusterObject) bool {
		return object.Status.Recovery != nil && object.Status.Recovery.Phase == v1beta2.RecoveryPhaseSucceeded &&
			is(object, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue)
	})
	c.Logf("serves again after %v", time.Since(from).Round(10*time.Millisecond))
	return c.settle(n)
}

// bumped fails the test unless the revision was raised.
func (c *cluster) bumped() {
	c.Helper()
	client, err := c.members.Client(c.leader().Pod)
	c.must(err, "ask the leader")
	r, err := client.Get(c.ctx(), "x")
	c.must(err, "ask for the revision")
	if r.Header.Revision <= revisionBump {
		c.Errorf("the revision is %d", r.Header.Revision)
	}
}

func testRecovery(t *testing.T, volumes bool) {
	s := start(t)
	spec := ""
	if volumes {
		spec = withVolumes
	}
	c := s.create("lost", 3, etcdVersion, spec)
	data := c.fill()
	if _, err := c.requestRecovery(); !apierrors.IsConflict(err) {
		t.Fatalf("the response to a recovery of a cluster that serves is %v, want a conflict", err)
	}
	clusterID, survivor := c.clusterID(), c.leader().Pod
	c.destroy(survivor)
	object := c.awaitLoss(survivor.Name)
	s.contains(condition(object, v1beta2.ClusterConditionQuorumLost).Message, survivor.Name, "raft index", "etcdclusters/lost/recover")

	plan, err := c.recoverNow(metav1.DryRunAll)
	s.must(err, "ask for the plan")
	if plan.Status.Source.Member != survivor.Name || plan.Status.ExpectedLoss == "" {
		t.Errorf("the plan is %+v", plan.Status)
	}
	if c.get().Status.Recovery != nil {
		t.Error("a dry run began a recovery")
	}
	endEvictions := c.evictRecoveryMember()
	_, err = c.recoverNow()
	s.must(err, "ask for the recovery")
	object = c.recovered(3)
	endEvictions()
	c.holds(data)
	c.bumped()
	if c.clusterID() == clusterID || object.Status.Recovery.OldClusterID == object.Status.Recovery.ClusterID {
		t.Errorf("the cluster has the ID that it had before: %+v", object.Status.Recovery)
	}
	by := object.Status.Recovery.RequestedBy
	if by == "" || !strings.Contains(c.kubectl("get", "events", "--field-selector=reason=RecoveryStarted"), "as requested by "+by) {
		t.Errorf("status.recovery says that %q asked, and no event does", by)
	}
	if slices.ContainsFunc(c.members.Live(), func(p *corev1.Pod) bool { return p.Name == survivor.Name }) {
		t.Errorf("the old member %s is still there", survivor.Name)
	}
	c.gone("pods", "etcd_retired=lost")
	if volumes {
		c.keepsPVC(survivor.Name)
	}
	if budgets := c.kubectl("get", "pdb", "-o", "name"); strings.TrimSpace(budgets) != "poddisruptionbudget.policy/lost" {
		t.Errorf("the budgets afterwards are %q", budgets)
	}
	for _, want := range []string{"RecoveryStarted", "RecoveryCutover", "Recovered"} {
		if !slices.Contains(c.reasons(), want) {
			t.Errorf("no event %s: %v", want, c.reasons())
		}
	}
}

// keepsPVC fails the test unless the PVC of an old member still exists after a recovery, and an event says so.
func (c *cluster) keepsPVC(name string) {
	c.Helper()
	c.kubectl("get", "pvc", name)
	if !slices.Contains(c.reasons(), "PVCKept") {
		c.Errorf("no event says that PVC %s is kept: %v", name, c.reasons())
	}
}

// gone waits until no object of the kinds carries the labels.
func (c *cluster) gone(kinds, labels string) {
	c.Helper()
	c.kubectl("wait", "--for=delete", kinds, "--selector="+labels, "--timeout=60s")
}

func TestRecovery(t *testing.T) {
	t.Parallel()
	testRecovery(t, false)
}

func TestRecoveryWithVolumes(t *testing.T) {
	t.Parallel()
	testRecovery(t, true)
}

func TestRecoveryAutomatic(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("auto", 3, etcdVersion, "\n  recovery: {quorumLoss: Automatic}")
	data := c.fill()
	c.destroy(c.leader().Pod)
	object := c.recovered(3)
	c.holds(data)
	c.bumped()
	if r := object.Status.Recovery; r.Trigger != v1beta2.RecoveryTriggerAutomatic || r.RequestedBy != "" || object.Status.PermanentQuorumLossSince != nil {
		t.Errorf("after the recovery: %+v, loss proven since %v", r, object.Status.PermanentQuorumLossSince)
	}
}

// A majority that is back before the new member serves goes on as if nothing had been.
func TestRecoveryIsAbandoned(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("back", 3, etcdVersion)
	data, clusterID, pods := c.fill(), c.clusterID(), c.members.Live()
	survivor := c.leader().Pod
	var hung []*corev1.Pod
	for _, p := range pods {
		if p.Name != survivor.Name {
			c.hang(p)
			hung = append(hung, p)
		}
	}
	c.awaitLoss(survivor.Name)
	// There is no room for the new member, so the recovery cannot get further than this.
	s.kubectl("create", "quota", "full", "--hard=pods=3")
	_, err := c.recoverNow()
	s.must(err, "ask for the recovery")
	c.await(s.within(time.Minute), "the recovery to begin", func(object *clusterObject) bool {
		return object.Status.Recovery != nil && object.Status.Recovery.Phase == v1beta2.RecoveryPhaseFilling
	})
	for _, p := range hung {
		c.resume(p)
	}
	c.await(s.within(time.Minute), "the recovery to be abandoned", func(object *clusterObject) bool {
		return object.Status.Recovery.Phase == v1beta2.RecoveryPhaseAbandoned && is(object, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue)
	})
	if got := c.clusterID(); got != clusterID {
		t.Errorf("the cluster ID was %x and is %x", clusterID, got)
	}
	for _, p := range pods {
		if !slices.ContainsFunc(c.members.Live(), func(now *corev1.Pod) bool { return now.UID == p.UID }) {
			t.Errorf("pod %s was replaced", p.Name)
		}
	}
	c.holds(data)
	c.gone("pods", fmt.Sprintf("etcd_recovery=%s", c.name))
}
