// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/backup"
)

// addEnded adds a single backup with a TTL of a minute that ended two minutes ago, and a newer one.
func (w *world) addEnded() (ended, newer *v1beta2.EtcdBackup) {
	w.addCluster("c", 3)
	ended, newer = w.addBackup("old", "c", nil), w.addBackup("newer", "c", nil)
	for b, age := range map[*v1beta2.EtcdBackup]time.Duration{ended: 2 * time.Minute, newer: time.Minute} {
		at := metav1.NewTime(w.clock.Now().Add(-age).Truncate(time.Second))
		b.Status = v1beta2.BackupStatus{
			Succeeded: true, Verified: true, Phase: v1beta2.BackupPhaseSucceeded, ObservedGeneration: 1, Attempts: 1, URI: "s3://bucket/key/" + b.Name,
			LastScheduleTime: &at, StartTime: &at, CompletionTime: &at, LastSuccessDate: at,
			Conditions: []metav1.Condition{
				{Type: backup.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: backup.ReasonStored, LastTransitionTime: at},
				{Type: backup.ConditionProgressing, Status: metav1.ConditionFalse, Reason: "Complete", LastTransitionTime: at},
			},
		}
	}
	ended.Spec.TTL = &v1beta2.Duration{Duration: time.Minute}
	w.sync()
	return ended, newer
}

// TestBackupExpires: the object is deleted and its event names what stays in the store.
func TestBackupExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, newer := w.addEnded()
	w.look(old.Name)
	if _, there := w.live.backups[key(old)]; there || w.live.backups[key(newer)] == nil {
		t.Fatalf("these are left: %v", w.live.backups)
	}
	if !slices.ContainsFunc(w.events, func(e string) bool {
		return strings.Contains(e, "BackupExpired") && strings.Contains(e, "s3://bucket/key/old")
	}) {
		t.Errorf("the events are %q", w.events)
	}
	w.sync()
	newer = newer.DeepCopy()
	newer.Spec.TTL = old.Spec.TTL
	w.version(newer)
	w.live.backups[key(newer)] = newer
	w.clock.SetTime(w.clock.Now().Add(time.Hour))
	w.sync()
	w.look(newer.Name)
	left := w.live.backups[key(newer)]
	if left == nil {
		t.Fatal("the last verified backup was deleted")
	}
	if c := meta.FindStatusCondition(left.Status.Conditions, backup.ConditionKept); c == nil || c.Reason != backup.ReasonLastProven {
		t.Errorf("the condition is %+v", c)
	}
}

// TestBackupExpiresByTheLiveAPI: the caches show nothing that needs the backup, and the live API does.
func TestBackupExpiresByTheLiveAPI(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*world, *v1beta2.EtcdBackup, *v1beta2.EtcdBackup){
		"a restore": func(w *world, old, _ *v1beta2.EtcdBackup) {
			w.restores = []*v1beta2.EtcdRestore{{Spec: v1beta2.RestoreSpec{Backup: &v1beta2.BackupReference{Name: old.Name}}}}
		},
		"no newer backup": func(w *world, _, newer *v1beta2.EtcdBackup) { delete(w.live.backups, key(newer)) },
		"a hold": func(w *world, old, _ *v1beta2.EtcdBackup) {
			held := old.DeepCopy()
			held.Spec.Hold = ptr.To(true)
			w.version(held)
			w.live.backups[key(held)] = held
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			old, newer := w.addEnded()
			edit(w, old, newer)
			for range 3 {
				w.look(old.Name)
				if w.live.backups[key(old)] == nil {
					t.Fatal("the backup was deleted")
				}
				w.sync()
			}
			if c := meta.FindStatusCondition(w.live.backups[key(old)].Status.Conditions, backup.ConditionKept); c == nil {
				t.Error("the status does not say why it stays")
			}
		})
	}
}
