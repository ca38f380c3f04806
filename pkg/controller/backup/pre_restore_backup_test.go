// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestPreRestoreBackupIsNoLastBackup: a lost cluster continues from its last backup, never
// from the data that a user has replaced.
func TestPreRestoreBackupIsNoLastBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := key(w.addCluster("c", 3))
	for name, at := range map[string]time.Duration{"nightly": time.Minute, "back-pre-restore-0a": time.Hour} {
		b := w.addBackup(name, "c", nil)
		b.Status = v1beta2.BackupStatus{Succeeded: true, Phase: v1beta2.BackupPhaseSucceeded, Verified: true, LastSuccessDate: metav1.NewTime(epoch.Add(at))}
		if name != "nightly" {
			b.Annotations = map[string]string{resources.AnnotationPreRestoreBackup: "back"}
		}
	}
	w.sync()
	if _, err := w.clusters.Reconcile(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if last := w.live.clusters[c].Status.LastBackup; last == nil || last.Name != "nightly" {
		t.Errorf("the last backup is %+v", last)
	}
}

// TestJobKeepsWhatARestoreReads: the Job knows an EtcdRestore that the cache does not show. No Job that deletes
// backups is made without a look at the EtcdRestores.
func TestJobKeepsWhatARestoreReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addCluster("c", 3)
	b := w.addBackup("nightly", "c", &v1beta2.BackupPolicy{BackupIntervalInSecond: 60, MaxBackups: 1})
	b.CreationTimestamp = metav1.NewTime(epoch.Add(-time.Hour))
	b.Status.History = []v1beta2.BackupRecord{{Succeeded: true, URI: "s3://bucket/key/nightly/old", Revision: 5, StartTime: metav1.NewTime(epoch), CompletionTime: ptr.To(metav1.NewTime(epoch))}}
	w.restores = []*v1beta2.EtcdRestore{{Spec: v1beta2.RestoreSpec{Backup: &v1beta2.BackupReference{Name: "nightly", Revision: ptr.To[int64](5)}}}}
	w.restoresErr = errors.New("the API does not respond")
	w.sync()
	if _, err := w.reconcile(key(b)); !errors.Is(err, w.restoresErr) || len(w.live.jobs) > 0 {
		t.Fatalf("made %d Jobs without a look: %v", len(w.live.jobs), err)
	}
	w.restoresErr = nil
	w.sync()
	if _, err := w.reconcile(key(b)); err != nil {
		t.Fatal(err)
	}
	jobs := w.open()
	if len(jobs) != 1 {
		t.Fatalf("made %d Jobs", len(jobs))
	}
	if keep := w.request(jobs[0]).Prune.Keep; !slices.Equal(keep, []string{"s3://bucket/key/nightly/old"}) {
		t.Errorf("the Job keeps %q", keep)
	}
}

// TestJobOfBeforeTheRestoreIsEnded: a Job that runs does not know the EtcdRestore that is created now, and would delete
// what it reads. The Job is ended before its agent has, and the next Job keeps that backup.
func TestJobOfBeforeTheRestoreIsEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addCluster("c", 3)
	b := w.addBackup("nightly", "c", &v1beta2.BackupPolicy{BackupIntervalInSecond: 3600, MaxBackups: 1})
	b.Status.History = []v1beta2.BackupRecord{{Succeeded: true, URI: "s3://bucket/key/nightly/old", Revision: 5, StartTime: metav1.NewTime(epoch), CompletionTime: ptr.To(metav1.NewTime(epoch))}}
	step := func() {
		t.Helper()
		w.sync()
		if _, err := w.reconcile(key(b)); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		step()
	}
	first := w.open()
	if len(first) != 1 {
		t.Fatalf("made %d Jobs", len(first))
	}
	w.podOf(first[0], corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	w.restores = []*v1beta2.EtcdRestore{{Spec: v1beta2.RestoreSpec{Backup: &v1beta2.BackupReference{Name: "nightly", Revision: ptr.To[int64](5)}}}}
	w.cachedRestores = w.restores
	for range 3 {
		step()
	}
	if open := w.open(); len(open) != 0 {
		t.Fatalf("%s runs on", open[0].Name)
	}
	for range 3 {
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		step()
	}
	if next := w.open(); len(next) != 1 || !slices.Equal(w.request(next[0]).Prune.Keep, []string{"s3://bucket/key/nightly/old"}) {
		t.Errorf("the next Jobs are %+v", next)
	}
}

// TestLastBackupAfterARestore: a lost cluster continues from the backup that was restored, not from a newer one of the
// data that the restore has replaced. Its schedule makes the next one at once.
func TestLastBackupAfterARestore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cluster := w.addCluster("c", 3)
	b := w.addBackup("nightly", "c", &v1beta2.BackupPolicy{Schedule: "0 0 1 1 *"})
	hour := func(n int) metav1.Time { return metav1.NewTime(epoch.Add(time.Duration(n) * time.Hour)) }
	record := func(n int) v1beta2.BackupRecord {
		return v1beta2.BackupRecord{Succeeded: true, Verified: true, Revision: int64(n), StartTime: hour(n), CompletionTime: ptr.To(hour(n)), URI: "s3://bucket/key/nightly/" + string(rune('0'+n))}
	}
	b.Status = v1beta2.BackupStatus{
		Succeeded: true, Phase: v1beta2.BackupPhaseSucceeded, Verified: true, EtcdRevision: 2, LastSuccessDate: hour(2), URI: "s3://bucket/key/nightly/2", Attempts: 1,
		LastScheduleTime: ptr.To(hour(2)), StartTime: ptr.To(hour(2)), CompletionTime: ptr.To(hour(2)), History: []v1beta2.BackupRecord{record(2), record(1)},
	}
	cluster.Status.LastBackup = &v1beta2.LastBackup{Name: "nightly", Revision: 2, Time: hour(2), Verified: true}
	cluster.Status.Recovery = &v1beta2.RecoveryStatus{ID: "r", Trigger: v1beta2.RecoveryTriggerRestore, Phase: v1beta2.RecoveryPhaseSucceeded, CompletionTime: ptr.To(hour(3))}
	cluster.Status.Restores = []v1beta2.ClusterRestore{{Name: "r", UID: "r", Backup: "nightly", Revision: 1, Time: ptr.To(hour(3))}}
	w.clock.SetTime(hour(3).Add(time.Minute))
	w.sync()
	if _, err := w.clusters.Reconcile(t.Context(), key(cluster)); err != nil {
		t.Fatal(err)
	}
	if last := w.live.clusters[key(cluster)].Status.LastBackup; last == nil || last.Name != "nightly" || last.Revision != 1 || !last.Verified {
		t.Errorf("the last backup is %+v", last)
	}
	if !w.woken[key(b)] {
		t.Error("nothing tells the EtcdBackup of the restore")
	}
	if _, err := w.reconcile(key(b)); err != nil || len(w.open()) != 1 {
		t.Errorf("after a restore there are %d Jobs: %v", len(w.open()), err)
	}
}
