// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// reportsRejection is true for conditions that report the quota.
func reportsRejection(conditions []metav1.Condition) bool {
	c := meta.FindStatusCondition(conditions, "Progressing")
	return c != nil && c.Reason == v1beta2.ReasonPodRejected && strings.Contains(c.Message, "exceeded quota")
}

// TestPodsRejectedByQuota takes a backup and restores it in a namespace that is full: each time the
// status says why nothing happens, and it goes on when there is room.
func TestPodsRejectedByQuota(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.volume()
	c := s.create("tight", 1, etcdVersion, withVolumes)
	data := c.fill()
	room := func(pods, pvcs string) {
		s.kubectl("patch", "quota", "full", "--type=merge", "-p", `{"spec":{"hard":{"pods":"`+pods+`","persistentvolumeclaims":"`+pvcs+`"}}}`)
	}
	s.kubectl("create", "quota", "full", "--hard=pods=0,persistentvolumeclaims=9")
	s.apply(backupManifest("once", "  etcdCluster: {name: tight}"+toVolume))
	s.awaitBackup(s.within(time.Minute), "once", "the status to report the quota", func(b *v1beta2.EtcdBackup) bool {
		return reportsRejection(b.Status.Conditions)
	})
	room("9", "9")
	s.awaitBackup(s.ctx(), "once", "success", hasSucceeded)
	c.spoil(data)

	room("0", "9")
	s.apply(restoreManifest("back", "tight", "  backup: {name: once}"))
	s.awaitRestore(s.within(time.Minute), "back", "the status to report the quota for the Job", func(r *v1beta2.EtcdRestore) bool {
		return reportsRejection(r.Status.Conditions) && r.Status.Phase == v1beta2.RestorePhaseVerifying
	})
	// The Jobs get their place, the volume of the recovery member none.
	room("9", "2")
	s.awaitRestore(s.ctx(), "back", "the status to report the quota for the new member", func(r *v1beta2.EtcdRestore) bool {
		return reportsRejection(r.Status.Conditions) && r.Status.Phase == v1beta2.RestorePhaseRestoring
	})
	c.await(s.within(time.Minute), "the same of the cluster, which serves", func(object *clusterObject) bool {
		b := object.Status.BlockedBy
		return b != nil && b.Reason == v1beta2.ReasonPodRejected && strings.Contains(b.Message, "exceeded quota") &&
			is(object, v1beta2.ClusterConditionProgressing, corev1.ConditionTrue) && is(object, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue)
	})
	room("9", "9")
	s.restored("back")
	c.settle(1)
	c.holds(data)
}

// TestRaisedDatabaseQuota fills a database and raises its quota: when every member has restarted with
// the larger quota, etcd takes writes again. Nothing else is needed.
func TestRaisedDatabaseQuota(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.volume()
	c := s.create("outgrown", 3, etcdVersion, withVolumes, smallQuota)
	client, _ := c.fillDatabase()
	c.awaitFull()
	if _, err := client.Get(s.ctx(), "big"); err != nil {
		t.Errorf("a full database serves no read: %v", err)
	}

	c.kubectl("patch", "etcd", c.name, "--type=merge", "-p", `{"spec":{"etcd":{"quotaBackendBytes":"64Mi"}}}`)
	c.settle(3) // Ready: each member has the larger quota, and no alarm is left
	client, err := c.members.Client(c.leader().Pod)
	s.must(err, "connect")
	_, err = client.Put(s.ctx(), "small", "x")
	s.must(err, "write after the quota was raised")
	if reasons := c.reasons(); !slices.Contains(reasons, "AlarmDisarmed") {
		t.Errorf("no event says AlarmDisarmed: %v", reasons)
	}
	for range 4 { // the alarm does not come back
		_, err = client.Put(s.ctx(), "big", strings.Repeat("x", 256<<10))
		s.must(err, "write on")
	}
	c.awaitVerdict(v1beta2.VerdictHealthy)
}
