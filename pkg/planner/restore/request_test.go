// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestRequest: the request names exactly the backup that was verified, under the UID of
// this restore, and says which data the cluster will not have.
func TestRequest(t *testing.T) {
	t.Parallel()
	o := observed(decrypted, held, checked(1, good()))
	got := Decide(o).Recovery
	if got == nil || !strings.Contains(got.ExpectedLoss, "revision 42") || !strings.Contains(got.ExpectedLoss, "EtcdBackup r-pre-restore has it up to revision 50") {
		t.Fatalf("asked for %+v", got)
	}
	want := &v1beta2.RecoveryStatus{
		ID: "uid-r", Trigger: v1beta2.RecoveryTriggerRestore, Phase: v1beta2.RecoveryPhasePending,
		Source: v1beta2.RecoverySource{Restore: "r", Backup: &v1beta2.BackupPlace{
			StorageType: v1beta2.BackupStorageTypeS3, SHA256: "abc", Decryption: &v1beta2.BackupDecryption{AgeIdentitiesSecret: "age"},
			RestoreSource: v1beta2.RestoreSource{S3: &v1beta2.S3RestoreSource{Path: "bucket/key/dir/snapshot.db", AWSSecret: "aws"}},
		}},
		RevisionBump: defaultBump + 8, RequestedAt: metav1.NewTime(o.Now), ExpectedLoss: got.ExpectedLoss,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if fills := Decide(observed(filling, held, checked(1, good(), unknownTarget))).Recovery; fills == nil || fills.ExpectedLoss != "" {
		t.Errorf("a new cluster loses %+v", fills)
	}
	if old := Decide(observed(of("3.4.23"), held)).Recovery; old == nil || !strings.Contains(old.ExpectedLoss, "cannot raise the revision") {
		t.Errorf("the request to an old etcd is %+v", old)
	}
}

// TestRestoreIsTold: the cluster tells of the restore from the request on, the newest first, and of not more than it can.
func TestRestoreIsTold(t *testing.T) {
	t.Parallel()
	o := observed(fromBackup(nil), held, checked(1, good()), func(o *Observed) {
		for range v1beta2.MaxClusterRestores {
			o.Cluster.Status.Restores = append(o.Cluster.Status.Restores, v1beta2.ClusterRestore{Name: "earlier"})
		}
	})
	told := Decide(o).Restores
	want := v1beta2.ClusterRestore{Name: "r", UID: "uid-r", Request: request(o.Restore), Backup: "b", Revision: 42, RevisionBump: defaultBump + 8}
	if len(told) != v1beta2.MaxClusterRestores || told[0] != want || told[1].Name != "earlier" {
		t.Errorf("tells of %+v", told)
	}
}

// TestAlreadyRestored: the message says which restore it repeats, what a second one would discard, and what to do.
func TestAlreadyRestored(t *testing.T) {
	t.Parallel()
	o := observed(restoredBefore("r", "old"))
	o.Cluster.Status.LastBackup = &v1beta2.LastBackup{Name: "nightly", Revision: 1100, Time: metav1.NewTime(epoch)}
	status := Status(o, Decide(o))
	for _, part := range []string{
		"EtcdRestore r", "UID old", "2026-11-01T11:00:00Z", "58 revisions", "EtcdBackup nightly of 2026-11-01T12:00:00Z", v1beta2.AnnotationRestoreAgain + "=VALUE", "another spec", "quorum",
	} {
		if !strings.Contains(status.Reason, part) {
			t.Errorf("%q does not say %q", status.Reason, part)
		}
	}
	if c := meta.FindStatusCondition(status.Conditions, v1beta2.ConditionStalled); c == nil || c.Status != metav1.ConditionTrue || c.Reason != ReasonAlreadyRestored {
		t.Errorf("condition %+v", c)
	}
	o.Cluster.Status.LastBackup.Time = metav1.NewTime(epoch.Add(-2 * time.Hour))
	if text := Status(o, Decide(o)).Reason; strings.Contains(text, "revisions") {
		t.Errorf("a backup from before counts: %q", text)
	}
}

// TestLook: the Job reads with the same key, and for the cluster that it is for.
func TestLook(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Observed{
		"from a store":   observed(decrypted),
		"from an object": observed(fromBackup(nil), decrypted),
	} {
		check := Decide(o).Check
		if check == nil || check.Place.Decryption == nil || check.Place.Decryption.AgeIdentitiesSecret != "age" || check.Cluster != o.Cluster {
			t.Errorf("%s: %+v", name, check)
		}
	}
	o := observed(fromBackup(nil), decrypted, held, checked(1, good()))
	if asked := Decide(o).Recovery; asked == nil || asked.Source.Backup.Decryption == nil {
		t.Errorf("asked for %+v", asked)
	}
	o = observed(homeless, templated)
	if check := Decide(o).Check; check == nil || check.Cluster == nil || check.Cluster.Name != "c" {
		t.Errorf("for a new cluster: %+v", check)
	}
}

// TestRetries wait longer each time, and no longer for a clock that was set back.
func TestRetries(t *testing.T) {
	t.Parallel()
	for attempt, want := range map[int32]time.Duration{1: 5 * time.Second, 2: 10 * time.Second, 6: 160 * time.Second} {
		for _, ago := range []time.Duration{0, -time.Hour} {
			o := observed(checked(attempt, bad("StoreUnavailable", true)))
			o.Jobs[0].Outcome.Completion = o.Now.Add(-ago)
			if plan := Decide(o); plan.Action != ActionNone || plan.RequeueAfter != want {
				t.Errorf("attempt %d, ended %s ago: waits %s", attempt, ago, plan.RequeueAfter)
			}
		}
	}
	later := observed(homeless, held, checked(1, good(), unknownTarget))
	later.Restore.CreationTimestamp = metav1.NewTime(later.Now.Add(time.Hour))
	if got := say(Decide(later)); got != "Verifying: createCluster 3.6.16 of 3" {
		t.Errorf("by a clock that was set back: %s", got)
	}
	put := Decide(observed(checked(1, good()))).Postponed(Wait{Reason: "PodRejected"})
	if put.Action != ActionNone || put.Wait.Reason != "PodRejected" || put.RequeueAfter != waitPeriod {
		t.Errorf("what is put off is %+v", put)
	}
}

// TestProgress: the status reports the progress of a transfer and the revision that it
// found, and drops both when the transfer is over.
func TestProgress(t *testing.T) {
	t.Parallel()
	half := &v1beta2.TransferProgress{Bytes: 50, TotalBytes: 100}
	o := observed(checked(1, nil, func(j *Job) { j.Progress = half }))
	status := Status(o, Decide(o))
	if diff := cmp.Diff(half, status.Progress); diff != "" {
		t.Error(diff)
	}
	o.Restore.Status, o.Jobs[0].Progress = status, &v1beta2.TransferProgress{Bytes: 55, TotalBytes: 100}
	if again := Status(o, Decide(o)); again.Progress.Bytes != 50 {
		t.Errorf("a twentieth of the way costs a write: %+v", again.Progress)
	}
	o.Jobs[0].Progress = nil
	if again := Status(o, Decide(o)); again.Progress == nil {
		t.Error("the progress is dropped because the agent does not respond")
	}
	o.Jobs[0].Outcome = good()
	if over := Status(o, Decide(o)); over.Progress != nil {
		t.Errorf("it is over: %+v", over.Progress)
	}
	for bump, o := range map[int64]Observed{
		1000: observed(held, recovery(v1beta2.RecoveryPhaseFilling), filled(RecoveryMember{Revision: 1042})),
		0:    observed(held, recovery(v1beta2.RecoveryPhasePending), checked(1, good())),
	} {
		if plan := Decide(o); plan.Revision != 42 || Status(o, plan).Revision != 42 {
			t.Errorf("bump %d: revision %d", bump, plan.Revision)
		}
	}
	if plan := Decide(observed(held, recovery(v1beta2.RecoveryPhasePending), checked(1, good()))); len(plan.Delete) > 0 {
		t.Errorf("%s goes before what it has found is written down", plan.Delete)
	}
}

// TestStatusGoesOn: the status keeps what it reports until there is more.
func TestStatusGoesOn(t *testing.T) {
	t.Parallel()
	o := observed(held, recovery(v1beta2.RecoveryPhaseFilling), filled(RecoveryMember{Revision: 1042}))
	status := Status(o, Decide(o))
	if status.Phase != v1beta2.RestorePhaseStarting || !status.StartTime.Time.Equal(o.Now) {
		t.Errorf("it starts: %+v", status)
	}
	o.Restore.Status, o.RecoveryMember, o.Now = status, nil, o.Now.Add(time.Minute)
	if again := Status(o, Decide(o)); again.Phase != v1beta2.RestorePhaseStarting || again.Revision != 42 || !again.StartTime.Equal(status.StartTime) {
		t.Errorf("it goes back: %+v", again)
	}
	o = observed(held, recovery(v1beta2.RecoveryPhaseFilling), filled(RecoveryMember{Rejected: &Wait{Reason: "Corrupt", Message: "flipped"}}))
	if status := Status(o, Decide(o)); status.Reason != "flipped" || status.CompletionTime != nil ||
		!meta.IsStatusConditionFalse(status.Conditions, ConditionSucceeded) {
		t.Errorf("a refusal: %+v", status)
	}
	for want, o := range map[metav1.ConditionStatus]Observed{
		metav1.ConditionUnknown: observed(checked(1, nil)),
		metav1.ConditionTrue:    observed(checked(1, good())),
		metav1.ConditionFalse:   observed(checked(1, bad("Corrupt", false))),
	} {
		o.Restore.Generation = 3
		status := Status(o, Decide(o))
		if status.ObservedGeneration != 3 || !meta.IsStatusConditionPresentAndEqual(status.Conditions, ConditionVerified, want) {
			t.Errorf("not %s: %+v", want, status.Conditions)
		}
	}
}

// TestKindsOfEtcdBackups: each kind of place that an EtcdBackup has can be restored from.
func TestKindsOfEtcdBackups(t *testing.T) {
	t.Parallel()
	for uri, source := range map[string]v1beta2.BackupSource{
		"s3://bucket/k/x":  {S3: &v1beta2.S3BackupSource{Path: "bucket/k"}},
		"abs://bucket/k/x": {ABS: &v1beta2.ABSSource{Path: "bucket/k"}},
		"gs://bucket/k/x":  {GCS: &v1beta2.GCSSource{Path: "bucket/k"}},
		"oss://bucket/k/x": {OSS: &v1beta2.OSSSource{Path: "bucket/k"}},
	} {
		o := observed(fromBackup(nil))
		o.Backup.Spec.BackupSource, o.Backup.Status.URI = source, uri
		switch {
		case source.S3 != nil:
			o.Backup.Spec.StorageType = v1beta2.BackupStorageTypeS3
		case source.ABS != nil:
			o.Backup.Spec.StorageType = v1beta2.BackupStorageTypeABS
		case source.GCS != nil:
			o.Backup.Spec.StorageType = v1beta2.BackupStorageTypeGCS
		default:
			o.Backup.Spec.StorageType = v1beta2.BackupStorageTypeOSS
		}
		if plan := Decide(o); plan.Check == nil || pathOf(&plan.Check.Place) != "bucket/k/x" {
			t.Errorf("%s: %s", uri, say(plan))
		}
	}
}
