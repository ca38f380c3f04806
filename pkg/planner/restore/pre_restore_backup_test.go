// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// sourceOf is where a backup goes.
func sourceOf(s *v1beta2.BackupSpec) string {
	switch {
	case s.S3 != nil:
		return s.S3.Path
	case s.GCS != nil:
		return s.GCS.Path
	case s.ABS != nil:
		return s.ABS.Path
	case s.OSS != nil:
		return s.OSS.Path
	default:
		return s.PersistentVolumeClaim.ClaimName + ":" + s.PersistentVolumeClaim.Path
	}
}

// uncopied is a restore whose backup is good, of a cluster that was not copied yet.
func uncopied(o *Observed) {
	held(o)
	checked(1, good())(o)
	o.Restore.Status.PreRestoreBackup = nil
}

func members(list ...v1beta2.MemberStatus) func(*Observed) {
	return func(o *Observed) { o.Cluster.Status.MemberStatuses = list }
}

// quorumLost since some time before now.
func quorumLost(ago time.Duration) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Status.Phase = v1beta2.ClusterPhaseFailed
		o.Cluster.Status.Conditions = []v1beta2.ClusterCondition{{
			Type: v1beta2.ClusterConditionQuorumLost, Status: corev1.ConditionTrue, LastTransitionTime: o.Now.Add(-ago).Format(time.RFC3339),
		}}
	}
}

func copiedTo(edit func(*v1beta2.EtcdBackup)) func(*Observed) {
	return func(o *Observed) {
		want, wait := o.newPreRestoreBackup()
		if wait != nil {
			panic(wait.Message)
		}
		edit(want)
		o.PreRestore = want
	}
}

// seen is a restore during which a member has responded.
func seen(o *Observed) {
	meta.SetStatusCondition(&o.Restore.Status.Conditions, metav1.Condition{Type: ConditionPreRestoreBackupRequired, Status: metav1.ConditionTrue, Reason: ReasonMemberResponded})
}

func copied(at time.Time) func(*Observed) {
	return func(o *Observed) {
		o.Restore.Status.PreRestoreBackup = &v1beta2.PreRestoreBackup{Backup: "x", Time: metav1.NewTime(at)}
	}
}

// justCopied: the pre-restore backup was stored a moment ago.
func justCopied(o *Observed) {
	o.Restore.Status.PreRestoreBackup.Time = metav1.NewTime(o.Now.Add(-time.Second))
}

// copiedUnconfirmed: the pre-restore backup is of a member that no quorum confirmed.
func copiedUnconfirmed(o *Observed) {
	copied(epoch)(o)
	o.Restore.Status.PreRestoreBackup.Unconfirmed, o.Restore.Status.PreRestoreBackup.RaftIndex = true, 7
}

// copiedDiffers: the data of the members differed when the pre-restore backup was made.
func copiedDiffers(o *Observed) {
	copied(epoch)(o)
	o.Restore.Status.PreRestoreBackup.DataDiffers = true
}

func told(reason, message string) func(*v1beta2.EtcdBackup) {
	return func(b *v1beta2.EtcdBackup) {
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{
			Type: backup.ConditionProgressing, Status: metav1.ConditionTrue, Reason: reason, Message: message,
		})
	}
}

func TestPreRestoreBackup(t *testing.T) {
	t.Parallel()
	const ask = "Verifying: requestRecovery from bucket/key/dir/snapshot.db sum abc bump 1000000000"
	const askAway = ask + " only if unresponsive"
	serves := v1beta2.MemberStatus{Name: "a", Healthy: corev1.ConditionTrue}
	survives := v1beta2.MemberStatus{Name: "a", Healthy: corev1.ConditionFalse, RaftIndex: 7}
	older, newer := survives, v1beta2.MemberStatus{Name: "d", Pod: "d", RaftIndex: 8}
	older.Pod, survives.Pod = "a", "a"
	backedUp := func(index int64) func(*Observed) {
		return func(o *Observed) {
			copiedUnconfirmed(o)
			justCopied(o)
			o.Restore.Status.PreRestoreBackup.RaftIndex = index
		}
	}
	hangs := v1beta2.MemberStatus{Name: "b", Pod: "b"}
	stored := v1beta2.MemberStatus{Name: "b", Claim: "b"}
	gone := v1beta2.MemberStatus{Name: "c"}
	ready := func(b *v1beta2.EtcdBackup) {
		b.Status = v1beta2.BackupStatus{Succeeded: true, EtcdRevision: 60, URI: "s3://x", LastSuccessDate: metav1.NewTime(epoch)}
	}
	goes := func(b *v1beta2.EtcdBackup) { ready(b); b.DeletionTimestamp = ptr.To(metav1.NewTime(epoch)) }
	runs := func(b *v1beta2.EtcdBackup) {
		told("Running", "attempt 1 runs")(b)
		b.Status.Phase = v1beta2.BackupPhaseRunning
	}
	unconfirmed := func(b *v1beta2.EtcdBackup) { ready(b); b.Status.Unconfirmed = true }
	differs := func(b *v1beta2.EtcdBackup) { ready(b); b.Status.DataDiffers = true }
	elsewhere := func(b *v1beta2.EtcdBackup) { ready(b); b.Spec.EtcdCluster = nil }
	suspended := func(b *v1beta2.EtcdBackup) { b.Spec.BackupPolicy = &v1beta2.BackupPolicy{Suspend: true} }
	failed := func(b *v1beta2.EtcdBackup) { b.Status.Phase, b.Status.Reason = v1beta2.BackupPhaseFailed, "denied" }
	reads := func(attempt int32) func(*Observed) {
		return func(o *Observed) {
			checked(attempt, nil)(o)
			o.Restore.Status.PreRestoreBackup = nil
		}
	}
	for name, test := range map[string]struct {
		edits []func(*Observed)
		want  string
	}{
		"the backup is being read":                                   {[]func(*Observed){reads(1), members(serves)}, "Verifying: backUpFirst to bucket/key-pre-restore wait Verifying"},
		"the backup is being read, and no member responds":           {[]func(*Observed){reads(1), members(hangs)}, "Verifying: wait Verifying"},
		"the backup is being read, and the pre-restore backup runs":  {[]func(*Observed){reads(1), members(serves), copiedTo(runs)}, "Verifying: wait Verifying"},
		"the backup is being read, and the cluster is paused":        {[]func(*Observed){reads(1), members(serves), func(o *Observed) { o.Cluster.Spec.Paused = true }}, "Verifying: wait Verifying"},
		"the backup is being read again":                             {[]func(*Observed){reads(2), members(serves)}, "Verifying: wait Verifying"},
		"waits for the finalizer":                                    {[]func(*Observed){uncopied, func(o *Observed) { o.Restore.Finalizers = nil }}, "Verifying: addFinalizer"},
		"waits while the cluster is paused":                          {[]func(*Observed){uncopied, func(o *Observed) { o.Cluster.Spec.Paused = true }}, "Verifying: wait ClusterPaused"},
		"a member serves":                                            {[]func(*Observed){uncopied, members(serves, gone)}, "Verifying: backUpFirst to bucket/key-pre-restore wait PreRestoreBackup"},
		"no member is known":                                         {[]func(*Observed){uncopied}, "Verifying: backUpFirst to bucket/key-pre-restore wait PreRestoreBackup"},
		"one member survives":                                        {[]func(*Observed){uncopied, members(survives, gone), quorumLost(time.Hour)}, "Verifying: backUpFirst to bucket/key-pre-restore wait PreRestoreBackup"},
		"a member may have survived":                                 {[]func(*Observed){uncopied, members(hangs)}, "Verifying: backUpFirst to bucket/key-pre-restore wait PreRestoreBackup"},
		"pods may come back":                                         {[]func(*Observed){uncopied, members(hangs, gone), quorumLost(time.Second)}, "Verifying: wait WaitingForMember"},
		"PVCs may get pods again":                                    {[]func(*Observed){uncopied, members(stored), quorumLost(time.Second)}, "Verifying: wait WaitingForMember"},
		"unknown members may come back":                              {[]func(*Observed){uncopied, quorumLost(time.Second)}, "Verifying: wait WaitingForMember"},
		"no member comes back in time":                               {[]func(*Observed){uncopied, members(stored, hangs), quorumLost(lossGrace)}, askAway},
		"the backup failed, and the member is away for a while":      {[]func(*Observed){uncopied, copiedTo(failed), members(stored), quorumLost(lossGrace)}, "Verifying: wait PreRestoreBackupFailed"},
		"the backup runs, and the member is away for long":           {[]func(*Observed){uncopied, copiedTo(runs), members(stored), quorumLost(time.Hour)}, "Verifying: wait PreRestoreBackup"},
		"a member responded before it was away":                      {[]func(*Observed){uncopied, seen, members(stored), quorumLost(time.Hour)}, "Verifying: backUpFirst to bucket/key-pre-restore wait PreRestoreBackup"},
		"a member responded, and its location was repaired since":    {[]func(*Observed){uncopied, seen, ownStore, members(hangs), quorumLost(time.Hour)}, "Verifying: backUpFirst to its/own wait PreRestoreBackup"},
		"a member responded, and a user does without the backup":     {[]func(*Observed){uncopied, seen, copiedTo(suspended), members(stored), quorumLost(time.Hour)}, ask},
		"a member responded, and neither pods nor PVCs exist by now": {[]func(*Observed){uncopied, seen, copiedTo(failed), members(gone), quorumLost(0)}, askAway},
		"neither pods nor PVCs exist":                                {[]func(*Observed){uncopied, members(gone), quorumLost(0)}, askAway},
		"no quorum confirms the backup, and one responds":            {[]func(*Observed){uncopied, copiedTo(unconfirmed), members(serves), quorumLostIs(corev1.ConditionFalse)}, "Verifying: copied 60 unconfirmed wait PreRestoreBackup"},
		"no quorum confirmed the backup a moment ago":                {[]func(*Observed){uncopied, copiedUnconfirmed, justCopied, members(serves), quorumLostIs(corev1.ConditionFalse)}, "Verifying: wait PreRestoreBackup"},
		"the backup is being read from a volume":                     {[]func(*Observed){reads(1), members(serves), fromBackup(nil)}, "Verifying: wait Verifying"},
		"the backup is of members whose data differs":                {[]func(*Observed){uncopied, copiedTo(differs), members(serves)}, "Verifying: copied 60 differs wait PreRestoreBackup"},
		"nothing but a backup of members whose data differs":         {[]func(*Observed){uncopied, copiedDiffers, members(serves)}, ask},
		"no quorum responds that could confirm the backup":           {[]func(*Observed){uncopied, copiedTo(unconfirmed), members(survives), quorumLost(time.Hour)}, "Verifying: copied 60 unconfirmed wait PreRestoreBackup"},
		"a quorum responds since the backup that none confirmed":     {[]func(*Observed){uncopied, copiedUnconfirmed, members(serves), quorumLostIs(corev1.ConditionFalse)}, "Verifying: backUpFirst to bucket/key-pre-restore wait PreRestoreBackup"},
		"nothing but a backup that no quorum confirmed":              {[]func(*Observed){uncopied, copiedUnconfirmed, members(survives), quorumLost(time.Hour)}, ask},
		"nothing but that, and a member without a PVC hangs":         {[]func(*Observed){uncopied, copiedUnconfirmed, justCopied, members(survives, hangs), quorumLost(time.Minute)}, "Verifying: wait PreRestoreBackup"},
		"the same, for long":                                         {[]func(*Observed){uncopied, copiedUnconfirmed, justCopied, members(survives, hangs), quorumLost(time.Hour)}, ask},
		"nothing but that, and a member with a PVC hangs":            {[]func(*Observed){uncopied, copiedUnconfirmed, justCopied, members(survives, stored), quorumLost(time.Hour)}, ask},
		"it has less than a member that responds":                    {[]func(*Observed){uncopied, backedUp(7), members(older, newer), quorumLost(time.Hour)}, "Verifying: wait PreRestoreBackup"},
		"it has as much as the newest member":                        {[]func(*Observed){uncopied, backedUp(8), members(older, newer), quorumLost(time.Hour)}, ask},
		"no member comes back in time, and one has no PVC":           {[]func(*Observed){uncopied, members(stored, hangs, v1beta2.MemberStatus{Name: "e", Pod: "e"}), quorumLost(lossGrace)}, "Verifying: wait WaitingForMember"},
		"the same for long":                                          {[]func(*Observed){uncopied, members(stored, hangs, v1beta2.MemberStatus{Name: "e", Pod: "e"}), quorumLost(diagnosis.UnstoredGrace)}, askAway},
		"the cluster is new":                                         {[]func(*Observed){uncopied, filling}, strings.Replace(ask, "1000000000", "0", 1)},
		"the cluster is being created":                               {[]func(*Observed){uncopied, filling, phase(v1beta2.ClusterPhaseCreating)}, strings.Replace(ask, "1000000000", "0", 1)},
		"a cluster that a restore made has served since":             {[]func(*Observed){uncopied, filling, phase(v1beta2.ClusterPhaseRunning), copied(epoch)}, ask},
		"the cluster has not begun":                                  {[]func(*Observed){uncopied, phase(v1beta2.ClusterPhaseNone)}, "Verifying: wait ClusterNotObserved"},
		"stored in the location of the cluster":                      {[]func(*Observed){uncopied, members(serves), ownStore}, "Verifying: backUpFirst to its/own wait PreRestoreBackup"},
		"stored beside the backups of the EtcdBackup":                {[]func(*Observed){uncopied, members(serves), fromBackup(nil)}, "Verifying: backUpFirst to backups:p-pre-restore wait PreRestoreBackup"},
		"stored beside the root of the PVC": {[]func(*Observed){uncopied, fromBackup(nil), func(o *Observed) {
			o.Backup.Spec.PersistentVolumeClaim.Path, o.Backup.Status.URI = "", "pvc://backups/b/new/snapshot.db"
		}}, "Verifying: backUpFirst to backups:backups-pre-restore wait PreRestoreBackup"},
		"never stored unencrypted beside an encrypted backup":     {[]func(*Observed){uncopied, members(serves), decrypted}, "Verifying: wait NoLocationForPreRestoreBackup"},
		"encrypted backup, stored in the location of the cluster": {[]func(*Observed){uncopied, members(serves), decrypted, ownStore}, "Verifying: backUpFirst to its/own wait PreRestoreBackup"},

		"the backup runs":                           {[]func(*Observed){uncopied, copiedTo(runs)}, "Verifying: wait PreRestoreBackup"},
		"Kubernetes rejects its pod":                {[]func(*Observed){uncopied, copiedTo(told(ReasonRejected, "quota"))}, "Verifying: wait PodRejected"},
		"the backup fails":                          {[]func(*Observed){uncopied, copiedTo(failed)}, "Verifying: wait PreRestoreBackupFailed"},
		"the backup fails and no member exists":     {[]func(*Observed){uncopied, copiedTo(failed), members(gone), quorumLost(0)}, askAway},
		"a user suspends the backup":                {[]func(*Observed){uncopied, copiedTo(func(b *v1beta2.EtcdBackup) { b.Spec.BackupPolicy = &v1beta2.BackupPolicy{Suspend: true} })}, ask},
		"the EtcdBackup is of another cluster":      {[]func(*Observed){uncopied, copiedTo(func(b *v1beta2.EtcdBackup) { b.Spec.EtcdCluster.Name = "other" })}, "Verifying: wait PreRestoreBackupFailed"},
		"the EtcdBackup is being deleted":           {[]func(*Observed){uncopied, copiedTo(func(b *v1beta2.EtcdBackup) { b.DeletionTimestamp = ptr.To(metav1.NewTime(epoch)) })}, "Verifying: wait PreRestoreBackupFailed"},
		"the status records the backup":             {[]func(*Observed){uncopied, copiedTo(ready)}, "Verifying: copied 60 wait PreRestoreBackup"},
		"stored, and being deleted":                 {[]func(*Observed){uncopied, copiedTo(goes)}, "Verifying: wait PreRestoreBackupFailed"},
		"the EtcdBackup is of endpoints":            {[]func(*Observed){uncopied, copiedTo(elsewhere)}, "Verifying: wait PreRestoreBackupFailed"},
		"after another restore":                     {[]func(*Observed){uncopied, copied(epoch), over2(epoch)}, "Verifying: backUpFirst to bucket/key-pre-restore wait PreRestoreBackup"},
		"a member responds, and the quorum is lost": {[]func(*Observed){uncopied, members(serves), quorumLost(time.Hour)}, "Verifying: backUpFirst to bucket/key-pre-restore wait PreRestoreBackup"},
		"another condition is true":                 {[]func(*Observed){uncopied, members(hangs), quorumLost(time.Hour), func(o *Observed) { o.Cluster.Status.Conditions[0].Type = "Other" }}, "Verifying: backUpFirst to bucket/key-pre-restore wait PreRestoreBackup"},
		"the quorum is not lost":                    {[]func(*Observed){uncopied, members(hangs), quorumLost(time.Hour), func(o *Observed) { o.Cluster.Status.Conditions[0].Status = corev1.ConditionFalse }}, "Verifying: backUpFirst to bucket/key-pre-restore wait PreRestoreBackup"},
		"recorded: the cluster gets the request":    {[]func(*Observed){uncopied, copied(epoch)}, ask},
		"the backup is too old":                     {[]func(*Observed){uncopied, copied(epoch.Add(-time.Hour))}, "Verifying: backUpFirst to bucket/key-pre-restore wait PreRestoreBackup"},
		"the cluster is younger than the backup":    {[]func(*Observed){uncopied, copied(epoch), madeAt(epoch.Add(time.Second))}, "Verifying: backUpFirst to bucket/key-pre-restore wait PreRestoreBackup"},
		"the cluster is as old as the backup":       {[]func(*Observed){uncopied, copied(epoch), madeAt(epoch)}, ask},
		"a restore ended after it":                  {[]func(*Observed){uncopied, copied(epoch), over2(epoch.Add(time.Second))}, "Verifying: backUpFirst to bucket/key-pre-restore wait PreRestoreBackup"},
		"a restore ended at a time of the future":   {[]func(*Observed){uncopied, copied(epoch), over2(epoch.Add(24 * time.Hour))}, ask},
		"a restore ended before it":                 {[]func(*Observed){uncopied, copied(epoch), over2(epoch.Add(-time.Second))}, ask},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := observed(test.edits...)
			plan := Decide(o)
			if got := say(plan); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			if plan.Action == ActionNone && plan.RequeueAfter <= 0 {
				t.Error("it is never looked at again")
			}
		})
	}
}

func phase(phase v1beta2.ClusterPhase) func(*Observed) {
	return func(o *Observed) { o.Cluster.Status.Phase = phase }
}

func madeAt(at time.Time) func(*Observed) {
	return func(o *Observed) { o.Cluster.CreationTimestamp = metav1.NewTime(at) }
}

func ownStore(o *Observed) {
	o.Cluster.Spec.Backup = &v1beta2.ClusterBackupPolicy{
		StorageType: v1beta2.BackupStorageTypeGCS, Schedule: "@daily", BackupSource: v1beta2.BackupSource{GCS: &v1beta2.GCSSource{Path: "its/own"}},
	}
}

func decrypted(o *Observed) {
	o.Restore.Spec.Decryption = &v1beta2.BackupDecryption{AgeIdentitiesSecret: "age"}
}

// over2 is the end of another restore.
func over2(at time.Time) func(*Observed) {
	return recovery(v1beta2.RecoveryPhaseSucceeded, notOwned, func(r *v1beta2.RecoveryStatus) { r.CompletionTime = ptr.To(metav1.NewTime(at)) })
}

// TestPreRestoreBackupObject: the EtcdBackup is created once, of this cluster, protected as
// the backups are, and stays as it is. A backup location that was repaired, or a
// pre-restore backup that is too old, makes another EtcdBackup.
func TestPreRestoreBackupObject(t *testing.T) {
	t.Parallel()
	encrypted := func(o *Observed) {
		fromBackup(nil)(o)
		o.Backup.Spec.Encryption = &v1beta2.BackupEncryption{AgeRecipientsSecret: "recipients"}
		o.Backup.Spec.Compression, o.Backup.Spec.ServiceAccountName = v1beta2.CompressionZstd, "writer"
		o.Backup.Spec.BackupPolicy = &v1beta2.BackupPolicy{Schedule: "@hourly"}
		o.Restore.Spec.ServiceAccountName = "reader"
		o.Cluster.Annotations = map[string]string{scopeAnnotation: "clusterwide"}
	}
	o := observed(uncopied, encrypted)
	b := Decide(o).Copy
	if b == nil || b.Namespace != "ns" || len(b.OwnerReferences) > 0 || b.Spec.EtcdCluster.Name != "c" || b.Spec.BackupPolicy != nil ||
		b.Spec.Encryption.AgeRecipientsSecret != "recipients" || b.Spec.ServiceAccountName != "writer" || b.Spec.Compression != v1beta2.CompressionZstd ||
		b.Annotations[resources.AnnotationPreRestoreBackup] != "r" || b.Annotations[scopeAnnotation] != "clusterwide" || !strings.HasPrefix(b.Name, "r-pre-restore-") {
		t.Fatalf("made %+v", b)
	}
	if o.Backup.Spec.PersistentVolumeClaim.Path != "p" {
		t.Error("the EtcdBackup was changed")
	}
	names := map[string]string{b.Name: "first"}
	for name, edit := range map[string]func(*Observed){
		"another store": ownStore, "an old copy": copied(epoch.Add(-time.Hour)), "another restore": func(o *Observed) { o.Restore.UID = "other" },
		"a cluster of the same name": func(o *Observed) { o.Cluster.UID = "other" },
	} {
		o := observed(uncopied, encrypted, edit)
		got := o.PreRestoreBackupName()
		if before := names[got]; before != "" || got == "" {
			t.Errorf("%s has the name %q of %s", name, got, before)
		}
		names[got] = name
	}
	same, differs := observed(uncopied, copied(epoch)), observed(uncopied, copiedDiffers)
	if same.PreRestoreBackupName() != differs.PreRestoreBackupName() {
		t.Error("the name of the EtcdBackup changes when the data is found to differ")
	}
	for _, begin := range []string{"", "b"} { // one of them would be cut after a dot
		long := observed(uncopied, func(o *Observed) { o.Restore.Name = begin + strings.Repeat("a.", 125) + "a" })
		if name := long.PreRestoreBackupName(); len(name) > maxObjectName || strings.Contains(name, ".-") {
			t.Errorf("name %q", name)
		}
	}
	expires := func(o *Observed) {
		ownStore(o)
		o.Cluster.Spec.Backup.TTL = &v1beta2.Duration{Duration: time.Hour}
	}
	plain, short := observed(uncopied, ownStore), observed(uncopied, expires)
	if got := Decide(short).Copy; got == nil || got.Spec.TTL == nil || got.Spec.TTL.Duration != time.Hour || got.Name != plain.PreRestoreBackupName() {
		t.Errorf("with a TTL: made %+v, want the name %s", got, plain.PreRestoreBackupName())
	}
	o = observed(uncopied, copiedTo(func(b *v1beta2.EtcdBackup) {
		told("RetryScheduled", "attempt 1 of 12 failed")(b)
		b.Status.Phase, b.Status.Reason = v1beta2.BackupPhaseFailed, "no bucket x"
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: backup.ConditionSucceeded, Status: metav1.ConditionFalse, Reason: "BucketNotFound"})
	}))
	if got := Decide(o).Wait; got == nil || !strings.Contains(got.Message, ": BucketNotFound: no bucket x; attempt 1 of 12 failed; repair its backup location") {
		t.Errorf("why it fails: %+v", got)
	}
	if o := observed(uncopied, copiedTo(func(b *v1beta2.EtcdBackup) {
		b.Status = v1beta2.BackupStatus{Succeeded: true, EtcdRevision: 60, URI: "s3://x", LastSuccessDate: metav1.NewTime(epoch)}
	})); Status(o, Decide(o)).PreRestoreBackup == nil || Status(o, Decide(o)).PreRestoreBackup.Revision != 60 {
		t.Errorf("the status does not tell of it: %+v", Status(o, Decide(o)))
	}
}

// TestPreRestoreBackupLocation: it is stored once beside each kind of location, with the
// service account that reads there.
func TestPreRestoreBackupLocation(t *testing.T) {
	t.Parallel()
	if b := Decide(observed(uncopied, ownStore)).Copy; b == nil || b.Spec.BackupPolicy != nil || b.Spec.EtcdCluster.Name != "c" {
		t.Errorf("a series is made: %+v", b)
	}
	for kind, place := range map[v1beta2.BackupStorageType]v1beta2.RestoreSource{
		v1beta2.BackupStorageTypeS3:  {S3: &v1beta2.S3RestoreSource{Path: "bucket/key"}},
		v1beta2.BackupStorageTypeABS: {ABS: &v1beta2.ABSSource{Path: "bucket/key"}},
		v1beta2.BackupStorageTypeGCS: {GCS: &v1beta2.GCSSource{Path: "bucket/key"}},
		v1beta2.BackupStorageTypeOSS: {OSS: &v1beta2.OSSSource{Path: "bucket/key"}},
	} {
		o := observed(uncopied, func(o *Observed) {
			o.Restore.Spec.BackupStorageType, o.Restore.Spec.RestoreSource = kind, place
			o.Restore.Spec.ServiceAccountName = "reader"
		})
		b := Decide(o).Copy
		if b == nil || b.Spec.StorageType != kind || sourceOf(&b.Spec) != "bucket/key-pre-restore" || b.Spec.ServiceAccountName != "reader" {
			t.Fatalf("%s: %+v", kind, b)
		}
		o.Restore.Status.PreRestoreBackup = &v1beta2.PreRestoreBackup{Backup: b.Name, Time: metav1.NewTime(epoch)}
		asked := Decide(o).Recovery
		if asked == nil || pathOf(asked.Source.Backup) != "bucket/key/dir/snapshot.db" || pathOf(&v1beta2.BackupPlace{RestoreSource: o.Restore.Spec.RestoreSource}) != "bucket/key" {
			t.Errorf("%s: asked for %+v", kind, asked)
		}
	}
	if o := observed(uncopied, in(v1beta2.RestorePhaseRestoring)); o.PreRestoreBackupName() != "" {
		t.Error("the planner names a pre-restore backup after the cluster got the request")
	}
}

// TestPreRestoreBackupIsRequired: once a member has responded, the status of the restore always says so, also if that was
// while the backup was verified. It does not say so of a member that only might have responded when the pre-restore backup
// began. It says nothing of a cluster that never had data.
func TestPreRestoreBackupIsRequired(t *testing.T) {
	t.Parallel()
	serves := v1beta2.MemberStatus{Name: "a", Healthy: corev1.ConditionTrue}
	away := v1beta2.MemberStatus{Name: "a", Pod: "a"}
	made := copiedTo(func(*v1beta2.EtcdBackup) {})
	required := func(reason string) func(*Observed) {
		return func(o *Observed) { seen(o); o.Restore.Status.Conditions[0].Reason = reason }
	}
	suspended := func(o *Observed) { seen(o); o.Restore.Status.Conditions[0].Status = metav1.ConditionFalse }
	for name, test := range map[string]struct {
		edits []func(*Observed)
		want  string
	}{
		"a member responds while the backup is verified": {[]func(*Observed){members(serves)}, ReasonMemberResponded},
		"no member responds":                             {[]func(*Observed){uncopied, members(away), quorumLost(time.Hour)}, ""},
		"a member has responded":                         {[]func(*Observed){uncopied, seen, members(away), quorumLost(time.Hour)}, ReasonMemberResponded},
		"an EtcdBackup was made":                         {[]func(*Observed){uncopied, made, members(away), quorumLost(time.Hour)}, ReasonMemberMayRespond},
		"an EtcdBackup was made, and was deleted since":  {[]func(*Observed){uncopied, required(ReasonMemberMayRespond), members(away), quorumLost(time.Hour)}, ReasonMemberMayRespond},
		"an EtcdBackup was made, and a member responds":  {[]func(*Observed){uncopied, required(ReasonMemberMayRespond), made, members(serves)}, ReasonMemberResponded},
		"an EtcdBackup was made, and is stored":          {[]func(*Observed){uncopied, required(ReasonMemberMayRespond), copied(epoch), members(away), quorumLost(time.Hour)}, ReasonMemberResponded},
		"a user has suspended it before the request":     {[]func(*Observed){copiedUnconfirmed, suspended, in(v1beta2.RestorePhaseRestoring), recovery(v1beta2.RecoveryPhaseFilling), members(serves)}, ""},
		"the cluster is new":                             {[]func(*Observed){uncopied, filling, members(serves)}, ""},
	} {
		o := observed(test.edits...)
		status := Status(o, Decide(o))
		got := ""
		if c := meta.FindStatusCondition(status.Conditions, ConditionPreRestoreBackupRequired); c != nil && c.Status == metav1.ConditionTrue {
			got = c.Reason
		}
		if got != test.want {
			t.Errorf("%s: required because of %q, want %q", name, got, test.want)
		}
	}
}

// TestPreRestoreBackupHasTheData: PVCs of old members are deleted because of a pre-restore backup only if it is fresh and
// a quorum confirmed it. One that was required later, and that a user does without, means that it lacks data.
func TestPreRestoreBackupHasTheData(t *testing.T) {
	t.Parallel()
	serves := members(v1beta2.MemberStatus{Name: "a", Healthy: corev1.ConditionTrue})
	alarmed := members(v1beta2.MemberStatus{Name: "a", Healthy: corev1.ConditionTrue, Alarms: []string{"CORRUPT (raised by 8e9e05c52164694a)"}})
	differed := func(o *Observed) { o.Restore.Status.PreRestoreBackup.DataDiffers = true }
	ready := func(b *v1beta2.EtcdBackup) {
		b.Status = v1beta2.BackupStatus{Succeeded: true, URI: "s3://x", LastSuccessDate: metav1.NewTime(epoch)}
	}
	suspended := copiedTo(func(b *v1beta2.EtcdBackup) { b.Spec.BackupPolicy = &v1beta2.BackupPolicy{Suspend: true} })
	for name, test := range map[string]struct {
		edits []func(*Observed)
		want  bool
	}{
		"fresh":                          {[]func(*Observed){uncopied, copied(epoch), serves}, true},
		"none":                           {[]func(*Observed){uncopied, serves}, false},
		"a user has suspended it":        {[]func(*Observed){uncopied, suspended, serves}, false},
		"too old":                        {[]func(*Observed){uncopied, copied(epoch.Add(-time.Hour)), serves}, false},
		"dated by a clock of the future": {[]func(*Observed){uncopied, copied(epoch.Add(24 * time.Hour)), serves}, false},
		"of a member without a quorum":   {[]func(*Observed){uncopied, copiedUnconfirmed, serves}, false},
		"of members whose data differs":  {[]func(*Observed){uncopied, copiedDiffers, serves}, false},
		"found while it was made":        {[]func(*Observed){uncopied, copiedTo(ready), alarmed}, false},
		"found before the request":       {[]func(*Observed){uncopied, copied(epoch), alarmed}, false},
		"found after the request":        {[]func(*Observed){held, in(v1beta2.RestorePhaseRestoring), recovery(v1beta2.RecoveryPhaseFilling), alarmed}, false},
		"found in the cutover":           {[]func(*Observed){held, in(v1beta2.RestorePhaseRestoring), recovery(v1beta2.RecoveryPhaseCutover), alarmed}, false},
		"found before a later backup":    {[]func(*Observed){uncopied, copied(epoch.Add(-time.Hour)), differed, copiedTo(ready), serves}, false},
		"the restored data has an alarm": {[]func(*Observed){held, in(v1beta2.RestorePhaseStarting), recovery(v1beta2.RecoveryPhaseCleaning), alarmed}, true},
		"of a member without a quorum, and a user has suspended the next":      {[]func(*Observed){uncopied, copiedUnconfirmed, suspended, serves, quorumLostIs(corev1.ConditionFalse)}, false},
		"of an earlier cluster, and a user has suspended that of this cluster": {[]func(*Observed){uncopied, copied(epoch), madeAt(epoch.Add(time.Second)), suspended, serves}, false},
	} {
		o := observed(test.edits...)
		status := Status(o, Decide(o))
		if got := status.HasPreRestoreBackup(o.Now); got != test.want {
			t.Errorf("%s: the data is stored: %t, want %t", name, got, test.want)
		}
	}
}

// TestPreRestoreBackupIsMadeAgain: the cluster asks for a fresh one when the recovery member serves, which may be days after
// the request.
func TestPreRestoreBackupIsMadeAgain(t *testing.T) {
	t.Parallel()
	const again = "backUpFirst to bucket/key-pre-restore wait PreRestoreBackup"
	old, fresh := copied(epoch.Add(-v1beta2.MaxPreRestoreBackupAge)), copied(epoch)
	serves := members(v1beta2.MemberStatus{Name: "a", Healthy: corev1.ConditionTrue})
	away := members(v1beta2.MemberStatus{Name: "a"})
	filling, asked := recovery(v1beta2.RecoveryPhaseFilling), blocked(v1beta2.ReasonPreRestoreBackupTooOld)
	stored := copiedTo(func(b *v1beta2.EtcdBackup) {
		b.Status = v1beta2.BackupStatus{Succeeded: true, EtcdRevision: 60, URI: "s3://x", LastSuccessDate: metav1.NewTime(epoch)}
	})
	fails := copiedTo(func(b *v1beta2.EtcdBackup) { b.Status.Phase = v1beta2.BackupPhaseFailed })
	suspended := copiedTo(func(b *v1beta2.EtcdBackup) { b.Spec.BackupPolicy = &v1beta2.BackupPolicy{Suspend: true} })
	for name, test := range map[string]struct {
		edits []func(*Observed)
		want  string
		lacks bool
	}{
		"no cluster asks":                     {[]func(*Observed){old, filling}, "Restoring: wait Filling", true},
		"the cluster asks":                    {[]func(*Observed){old, filling, asked}, "Restoring: " + again, true},
		"the cluster asks during the cutover": {[]func(*Observed){old, recovery(v1beta2.RecoveryPhaseCutover), asked}, "Restoring: " + again, true},
		"it was made":                         {[]func(*Observed){old, filling, asked, stored}, "Restoring: copied 60 wait PreRestoreBackup", false},
		"it fails":                            {[]func(*Observed){old, filling, asked, fails}, "Restoring: wait PreRestoreBackupFailed", true},
		"its EtcdBackup no longer exists":     {[]func(*Observed){old, filling, asked, fromBackup(nil), func(o *Observed) { o.Backup = nil }}, "Restoring: wait NoLocationForPreRestoreBackup", true},
		"a user does without":                 {[]func(*Observed){old, filling, asked, suspended}, "Restoring: wait Filling", false},
		"it is fresh":                         {[]func(*Observed){fresh, filling, asked}, "Restoring: wait Filling", false},
		"fresh, the cluster of the future":    {[]func(*Observed){fresh, filling, asked, madeAt(epoch.AddDate(1, 0, 0))}, "Restoring: wait Filling", false},
		"a quorum has confirmed none":         {[]func(*Observed){copiedUnconfirmed, filling, asked, quorumLostIs(corev1.ConditionFalse)}, "Restoring: " + again, false},
		"the recovery is cancelled":           {[]func(*Observed){old, recovery(v1beta2.RecoveryPhaseFilling, cancelledAlready), asked}, "Restoring: wait Filling", true},
		"the members are lost by now":         {[]func(*Observed){old, filling, asked, away, quorumLost(time.Hour)}, "Restoring: wait Filling", true},
	} {
		o := observed(append([]func(*Observed){held, in(v1beta2.RestorePhaseRestoring), seen, serves}, test.edits...)...)
		plan := Decide(o)
		if got := say(plan); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
		status := Status(o, plan)
		if got := status.LacksPreRestoreBackup(o.Now); got != test.lacks {
			t.Errorf("%s: the cluster reads that a backup is lacking: %t, want %t", name, got, test.lacks)
		}
	}
	o := observed(held, in(v1beta2.RestorePhaseRestoring), seen, serves, old, filling, asked)
	if plan := Decide(o); o.PreRestoreBackupName() != plan.Copy.Name {
		t.Errorf("the controller looks for EtcdBackup %q, and makes %q", o.PreRestoreBackupName(), plan.Copy.Name)
	}
}
