// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestBackupAfterARecovery: a schedule makes a backup at once after the data of the cluster went on in new members, and
// then goes on as before.
func TestBackupAfterARecovery(t *testing.T) {
	t.Parallel()
	s := newScene(t, &v1beta2.BackupPolicy{Schedule: "0 0 * * *"})
	s.Now = epoch.Add(13 * time.Hour)
	s.begins(epoch.Add(12*time.Hour), 1)
	s.ends(time.Second, good(1))
	s.step()
	s.rests()
	s.Recovered = epoch.Add(14 * time.Hour)
	s.rests() // a clock that was set back is no reason for a backup
	s.Now = epoch.Add(14*time.Hour + time.Minute)
	s.begins(s.Recovered, 1)
	s.ends(time.Second, good(2))
	s.step()
	if plan := s.rests(); !plan.Next.Equal(epoch.Add(36 * time.Hour)) {
		t.Errorf("the next one is due at %s", plan.Next)
	}
	s.Backup.Spec.BackupPolicy.Suspend, s.Recovered, s.Now = true, epoch.Add(15*time.Hour), epoch.Add(16*time.Hour)
	if plan := s.step(); plan.Action != ActionNone {
		t.Errorf("suspended: %+v", plan)
	}
	once := newScene(t, nil)
	once.begins(epoch, 1)
	once.ends(time.Second, good(1))
	once.step()
	once.Recovered, once.Now = epoch.Add(time.Hour), epoch.Add(2*time.Hour)
	once.rests()
	young := newScene(t, &v1beta2.BackupPolicy{Schedule: "0 0 * * *"})
	young.Recovered = epoch.Add(-time.Hour)
	if plan := young.step(); plan.Action != ActionNone {
		t.Errorf("created after the recovery: %+v", plan)
	}
}

// TestBackupsBehindARecovery: the plan lists those that make a backup at once after a recovery.
func TestBackupsBehindARecovery(t *testing.T) {
	t.Parallel()
	hour := func(n int) *metav1.Time { return ptr.To(metav1.NewTime(epoch.Add(time.Duration(n) * time.Hour))) }
	for name, test := range map[string]struct {
		edit func(*v1beta2.EtcdBackup, *v1beta2.RecoveryStatus)
		want bool
	}{
		"idle":                       {func(*v1beta2.EtcdBackup, *v1beta2.RecoveryStatus) {}, true},
		"made since":                 {func(b *v1beta2.EtcdBackup, _ *v1beta2.RecoveryStatus) { b.Status.LastScheduleTime = hour(2) }, false},
		"suspended":                  {func(b *v1beta2.EtcdBackup, _ *v1beta2.RecoveryStatus) { b.Spec.BackupPolicy.Suspend = true }, false},
		"made once":                  {func(b *v1beta2.EtcdBackup, _ *v1beta2.RecoveryStatus) { b.Spec.BackupPolicy = nil }, false},
		"of endpoints":               {func(b *v1beta2.EtcdBackup, _ *v1beta2.RecoveryStatus) { b.Spec.EtcdCluster = nil }, false},
		"created since":              {func(b *v1beta2.EtcdBackup, _ *v1beta2.RecoveryStatus) { b.CreationTimestamp = *hour(2) }, false},
		"the recovery is under way":  {func(_ *v1beta2.EtcdBackup, r *v1beta2.RecoveryStatus) { r.Phase = v1beta2.RecoveryPhaseCutover }, false},
		"the recovery is abandoned":  {func(_ *v1beta2.EtcdBackup, r *v1beta2.RecoveryStatus) { r.Phase = v1beta2.RecoveryPhaseAbandoned }, false},
		"the recovery is tomorrow's": {func(_ *v1beta2.EtcdBackup, r *v1beta2.RecoveryStatus) { r.CompletionTime = hour(24) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, c := newBackup(&v1beta2.BackupPolicy{Schedule: "0 0 * * *"}), newCluster(nil)
			b.Status.LastScheduleTime = hour(1)
			c.Status.Recovery = &v1beta2.RecoveryStatus{Phase: v1beta2.RecoveryPhaseSucceeded, CompletionTime: hour(2)}
			test.edit(b, c.Status.Recovery)
			plan := DecideCluster(ClusterObserved{Now: hour(3).Time, Cluster: c, Backups: []*v1beta2.EtcdBackup{b}})
			if got := len(plan.Behind) == 1; got != test.want {
				t.Errorf("listed: %t, want %t", got, test.want)
			}
			o := Observed{Now: hour(3).Time, Backup: b, Recovered: RecoveredAt(c)}
			if begins := Decide(o).Action == ActionSave; test.want && !begins {
				t.Error("it is listed and makes no backup")
			}
		})
	}
}
