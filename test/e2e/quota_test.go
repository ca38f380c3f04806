// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
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
