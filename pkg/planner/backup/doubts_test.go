// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestDoubtsOfAStoredBackup: the reason of Succeeded says why a stored backup may not be what it seems, and BackupHealthy of
// the cluster is then False. The next good backup ends that.
func TestDoubtsOfAStoredBackup(t *testing.T) {
	t.Parallel()
	for stored, test := range map[string]struct {
		outcome func(*Outcome)
		status  corev1.ConditionStatus
		healthy string
	}{
		"Stored":            {func(*Outcome) {}, corev1.ConditionTrue, "BackupsCurrent"},
		"StoredUnconfirmed": {func(o *Outcome) { o.Unconfirmed = true }, corev1.ConditionFalse, "BackupUnconfirmed"},
		"StoredDataDiffers": {func(o *Outcome) { o.Unconfirmed, o.DataDiffers = true, true }, corev1.ConditionFalse, "BackupDataDiffers"},
	} {
		t.Run(stored, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, &v1beta2.BackupPolicy{BackupIntervalInSecond: 60})
			healthy := func(status corev1.ConditionStatus, reason string) {
				t.Helper()
				c := DecideCluster(ClusterObserved{Now: s.Now, Cluster: newCluster(nil), Backups: []*v1beta2.EtcdBackup{s.Backup}}).Healthy
				if c == nil || c.Status != status || c.Reason != reason {
					t.Errorf("BackupHealthy is %+v, want %s %s", c, status, reason)
				}
			}
			s.begins(epoch, 1)
			outcome := good(7)
			test.outcome(&outcome)
			s.ends(time.Second, outcome)
			s.condition(ConditionSucceeded, metav1.ConditionTrue, stored)
			healthy(test.status, test.healthy)
			isSaid := func(o Outcome) {
				t.Helper()
				status := &s.Backup.Status
				if record := status.History[0]; status.DataDiffers != o.DataDiffers || record.DataDiffers != o.DataDiffers || record.Unconfirmed != o.Unconfirmed {
					t.Errorf("the status is %+v, want the doubts of %+v", status, o)
				}
			}
			isSaid(outcome)
			s.Now = epoch.Add(time.Minute)
			s.step()
			s.begins(epoch.Add(time.Minute), 1)
			healthy(test.status, test.healthy)
			s.ends(time.Second, good(8))
			isSaid(good(8))
			s.condition(ConditionSucceeded, metav1.ConditionTrue, "Stored")
			healthy(corev1.ConditionTrue, "BackupsCurrent")
		})
	}
}
