// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"testing"
	"time"

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
