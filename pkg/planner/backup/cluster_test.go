// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func newCluster(policy *v1beta2.ClusterBackupPolicy) *v1beta2.EtcdCluster {
	return &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", UID: "u", CreationTimestamp: metav1.NewTime(epoch)},
		Spec:       v1beta2.ClusterSpec{Backup: policy},
	}
}

func hourly() *v1beta2.ClusterBackupPolicy {
	return &v1beta2.ClusterBackupPolicy{
		StorageType: v1beta2.BackupStorageTypeS3, Schedule: "0 * * * *", TimeZone: ptr.To("Europe/Berlin"),
		BackupSource: v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "b/k", AWSSecret: "aws"}},
		Retention:    &v1beta2.BackupRetention{Count: ptr.To[int32](3), Age: &v1beta2.Duration{Duration: 48 * time.Hour}},
		Compression:  v1beta2.CompressionZstd, Verify: v1beta2.VerificationRestore,
		Encryption: &v1beta2.BackupEncryption{AgeRecipientsSecret: "keys"},
	}
}

// TestScheduleOfACluster goes through the life of spec.backup.
func TestScheduleOfACluster(t *testing.T) {
	t.Parallel()
	o := ClusterObserved{Now: epoch, Cluster: newCluster(nil)}
	if plan := DecideCluster(o); plan.Create != nil || plan.Update != nil || plan.Healthy != nil {
		t.Errorf("without a policy: %+v", plan)
	}
	o.Cluster.Spec.Backup = hourly()
	made := DecideCluster(o).Create
	if made == nil || made.Name != "c-scheduled" || made.Namespace != "ns" || len(made.OwnerReferences) > 0 {
		t.Fatalf("made: %+v", made)
	}
	o.Cluster.Annotations = map[string]string{v1beta2.AnnotationRebuilt: "true"}
	if again := DecideCluster(o).Create; again == nil || !ptr.Deref(again.Spec.Hold, false) {
		t.Errorf("what held backups is lost, and they are not held: %+v", again)
	}
	o.Cluster.Annotations = nil
	want := v1beta2.BackupSpec{
		EtcdCluster: &v1beta2.EtcdClusterRef{Name: "c"}, StorageType: v1beta2.BackupStorageTypeS3,
		BackupSource: v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "b/k", AWSSecret: "aws"}},
		BackupPolicy: &v1beta2.BackupPolicy{
			Schedule: "0 * * * *", TimeZone: ptr.To("Europe/Berlin"), MaxBackups: 3, MaxAge: &v1beta2.Duration{Duration: 48 * time.Hour},
		},
		Compression: v1beta2.CompressionZstd, Verify: v1beta2.VerificationRestore,
		Encryption: &v1beta2.BackupEncryption{AgeRecipientsSecret: "keys"},
	}
	if diff := cmp.Diff(want, made.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	v1beta2.SetObjectDefaults_EtcdBackup(made)
	o.Scheduled, o.Backups = made, []*v1beta2.EtcdBackup{made}
	if plan := DecideCluster(o); plan.Create != nil || plan.Update != nil {
		t.Errorf("at rest: %+v", plan)
	}
	o.Scheduled.Spec.Hold, o.Scheduled.Spec.HeldSnapshots = ptr.To(true), []string{"s3://b/k/1"}
	if plan := DecideCluster(o); plan.Update != nil {
		t.Errorf("what a user holds is released: %+v", plan.Update.Spec)
	}
	o.Cluster.Spec.Backup.TTL = &v1beta2.Duration{Duration: time.Hour}
	if plan := DecideCluster(o); plan.Update != nil {
		t.Errorf("a periodic EtcdBackup has a TTL: %+v", plan.Update.Spec)
	}
	o.Cluster.Spec.Backup.Schedule = "30 * * * *"
	if plan := DecideCluster(o); plan.Update == nil || plan.Update.Spec.BackupPolicy.Schedule != "30 * * * *" {
		t.Errorf("changed: %+v", plan)
	}
	o.Cluster.Spec.Backup.Schedule = ""
	update := DecideCluster(o).Update
	if update == nil || !update.Spec.BackupPolicy.Suspend {
		t.Fatalf("a schedule that was removed does not suspend the EtcdBackup: %+v", update)
	}
	o.Scheduled = update
	if plan := DecideCluster(o); plan.Update != nil || plan.Create != nil {
		t.Errorf("suspended: %+v", plan)
	}
	o.Cluster.Spec.Backup = hourly()
	if plan := DecideCluster(o); plan.Update == nil || plan.Update.Spec.BackupPolicy.Suspend {
		t.Errorf("the EtcdBackup is suspended a second time: %+v", plan)
	}
	// An EtcdBackup with another owner is not changed, and the condition reports it.
	o.Scheduled = update.DeepCopy()
	o.Scheduled.Annotations = nil
	if plan := DecideCluster(o); plan.Update != nil || plan.Healthy == nil || plan.Healthy.Reason != "NameConflict" {
		t.Errorf("EtcdBackup that is not owned: %+v", plan)
	}
}

func TestHealthOfBackups(t *testing.T) {
	t.Parallel()
	periodic := func(change func(*v1beta2.EtcdBackup)) *v1beta2.EtcdBackup {
		b := newBackup(&v1beta2.BackupPolicy{BackupIntervalInSecond: 3600})
		b.Status = v1beta2.BackupStatus{Phase: v1beta2.BackupPhaseSucceeded, Succeeded: true, LastSuccessDate: metav1.NewTime(epoch.Add(time.Minute))}
		if change != nil {
			change(b)
		}
		return b
	}
	single := newBackup(nil)
	single.Status.Phase = v1beta2.BackupPhaseFailed
	confirmed := newBackup(nil)
	confirmed.Name, confirmed.Status = "b2", v1beta2.BackupStatus{Phase: v1beta2.BackupPhaseSucceeded, Verified: true, LastSuccessDate: metav1.NewTime(epoch.Add(30 * time.Second))}
	for name, test := range map[string]struct {
		after   time.Duration
		backups []*v1beta2.EtcdBackup
		status  corev1.ConditionStatus
		reason  string
	}{
		"none":         {time.Hour, nil, "", ""},
		"a single one": {time.Hour, []*v1beta2.EtcdBackup{single}, "", ""},
		"made":         {time.Hour, []*v1beta2.EtcdBackup{periodic(nil)}, corev1.ConditionTrue, "BackupsCurrent"},
		"one missed":   {2 * time.Hour, []*v1beta2.EtcdBackup{periodic(nil)}, corev1.ConditionTrue, "BackupsCurrent"},
		"two missed":   {3 * time.Hour, []*v1beta2.EtcdBackup{periodic(nil)}, corev1.ConditionFalse, "BackupOverdue"},
		"clock ahead":  {time.Hour, []*v1beta2.EtcdBackup{periodic(func(b *v1beta2.EtcdBackup) { b.Status.LastSuccessDate = metav1.NewTime(epoch.AddDate(1, 0, 0)) })}, corev1.ConditionFalse, "BackupOverdue"},
		"suspended":    {9 * time.Hour, []*v1beta2.EtcdBackup{periodic(func(b *v1beta2.EtcdBackup) { b.Spec.BackupPolicy.Suspend = true })}, "", ""},
		"not yet":      {time.Hour, []*v1beta2.EtcdBackup{newBackup(&v1beta2.BackupPolicy{BackupIntervalInSecond: 3600})}, corev1.ConditionUnknown, "NoBackupYet"},
		"never":        {9 * time.Hour, []*v1beta2.EtcdBackup{newBackup(&v1beta2.BackupPolicy{BackupIntervalInSecond: 3600})}, corev1.ConditionFalse, "BackupOverdue"},
		"one of two":   {time.Hour, []*v1beta2.EtcdBackup{periodic(nil), periodic(func(b *v1beta2.EtcdBackup) { b.Status.Phase = v1beta2.BackupPhaseFailed })}, corev1.ConditionFalse, "BackupFailed"},
		"no quorum":    {time.Hour, []*v1beta2.EtcdBackup{periodic(func(b *v1beta2.EtcdBackup) { b.Status.Unconfirmed = true })}, corev1.ConditionFalse, "BackupUnconfirmed"},
		"no quorum, and one with its writes": {time.Hour, []*v1beta2.EtcdBackup{
			periodic(func(b *v1beta2.EtcdBackup) { b.Status.Unconfirmed, b.Status.Verified = true, true }), confirmed,
		}, corev1.ConditionTrue, "BackupsCurrent"},
		"retry runs": {time.Hour, []*v1beta2.EtcdBackup{periodic(func(b *v1beta2.EtcdBackup) {
			b.Status.Phase, b.Status.Conditions = v1beta2.BackupPhaseRunning, []metav1.Condition{{Type: ConditionSucceeded, Status: metav1.ConditionFalse, Message: "full"}}
		})}, corev1.ConditionFalse, "BackupFailed"},
		"next one runs": {time.Hour, []*v1beta2.EtcdBackup{periodic(func(b *v1beta2.EtcdBackup) { b.Status.Phase = v1beta2.BackupPhaseRunning })}, corev1.ConditionTrue, "BackupsCurrent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := ClusterObserved{Now: epoch.Add(test.after), Cluster: newCluster(nil), Backups: test.backups}
			plan := DecideCluster(o)
			if test.reason == "" {
				if plan.Healthy != nil {
					t.Fatalf("condition %+v", plan.Healthy)
				}
				return
			}
			if plan.Healthy == nil || plan.Healthy.Status != test.status || plan.Healthy.Reason != test.reason {
				t.Fatalf("condition %+v", plan.Healthy)
			}
			if plan.Healthy.Reason == "BackupsCurrent" && plan.RequeueAfter == 0 {
				t.Error("the planner does not look again, so an overdue backup goes unnoticed")
			}
			status := plan.WithBackups(&o.Cluster.Status)
			o.Cluster.Status, o.Now = status, o.Now.Add(time.Second)
			if again := DecideCluster(o).WithBackups(&o.Cluster.Status); !cmp.Equal(again, status) {
				t.Errorf("the status changes at rest: %s", cmp.Diff(status, again))
			}
		})
	}
}

// TestOverdueBackupOfAClusterOfTheFuture: a clock that was ahead when the cluster was created does not hide for as long
// that its backups are overdue.
func TestOverdueBackupOfAClusterOfTheFuture(t *testing.T) {
	t.Parallel()
	b := newBackup(&v1beta2.BackupPolicy{BackupIntervalInSecond: 3600})
	b.Status = v1beta2.BackupStatus{Phase: v1beta2.BackupPhaseSucceeded, Succeeded: true, LastSuccessDate: metav1.NewTime(epoch)}
	o := ClusterObserved{Now: epoch.Add(9 * time.Hour), Cluster: newCluster(nil), Backups: []*v1beta2.EtcdBackup{b}}
	o.Cluster.CreationTimestamp = metav1.NewTime(epoch.AddDate(1, 0, 0))
	if got := DecideCluster(o).Healthy; got == nil || got.Reason != "BackupOverdue" {
		t.Errorf("condition %+v", got)
	}
}

// TestLastBackup: the last backup includes backups whose objects no longer exist, and not
// those of an earlier cluster with the same name.
func TestLastBackup(t *testing.T) {
	t.Parallel()
	earlier, older, newer := newBackup(nil), newBackup(nil), newBackup(nil)
	earlier.Status.LastSuccessDate = metav1.NewTime(epoch.Add(-time.Minute))
	older.Name, older.Status.LastSuccessDate = "older", metav1.NewTime(epoch.Add(time.Minute))
	newer.Name, newer.Status.LastSuccessDate, newer.Status.EtcdRevision, newer.Status.Verified = "newer", metav1.NewTime(epoch.Add(time.Hour)), 7, true
	o := ClusterObserved{Now: epoch.Add(2 * time.Hour), Cluster: newCluster(nil), Backups: []*v1beta2.EtcdBackup{earlier}}
	if last := DecideCluster(o).LastBackup; last != nil {
		t.Errorf("of an earlier cluster: %+v", last)
	}
	o.Backups = append(o.Backups, newer, older)
	last := DecideCluster(o).LastBackup
	if last == nil || last.Name != "newer" || last.Revision != 7 || !last.Verified {
		t.Fatalf("last: %+v", last)
	}
	o.Cluster.Status.LastBackup, o.Backups = last, nil
	if kept := DecideCluster(o).LastBackup; kept == nil || kept.Name != "newer" {
		t.Errorf("the object of the last backup no longer exists: %+v", kept)
	}
}
