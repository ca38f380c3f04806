// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
)

var epoch = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

const target = "3.6.16/2147483648"

// observed is a restore of an existing cluster from a store, edited.
func observed(edits ...func(*Observed)) Observed {
	o := Observed{
		Now: epoch.Add(time.Minute),
		Restore: &v1beta2.EtcdRestore{
			ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "ns", UID: "uid-r", CreationTimestamp: metav1.NewTime(epoch)},
			Spec: v1beta2.RestoreSpec{
				EtcdCluster: v1beta2.EtcdClusterRef{Name: "c"}, BackupStorageType: v1beta2.BackupStorageTypeS3,
				RestoreSource: v1beta2.RestoreSource{S3: &v1beta2.S3RestoreSource{Path: "bucket/key", AWSSecret: "aws"}},
			},
		},
		Cluster: &v1beta2.EtcdCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", UID: "uid-c"},
			Spec:       v1beta2.ClusterSpec{Version: "3.6.16", Replicas: ptr.To[int32](3)},
			Status:     v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseRunning},
		},
	}
	o.Restore.Status.PreRestoreBackup = &v1beta2.PreRestoreBackup{Backup: "r-pre-restore", Revision: 50, Time: metav1.NewTime(epoch.Add(55 * time.Second))}
	for _, edit := range edits {
		edit(&o)
	}
	return o
}

func held(o *Observed)     { o.Restore.Finalizers = []string{Finalizer} }
func paused(o *Observed)   { o.Cluster.Spec.Paused = true }
func deleted(o *Observed)  { o.Restore.DeletionTimestamp = ptr.To(metav1.NewTime(epoch)) }
func homeless(o *Observed) { o.Cluster = nil }
func templated(o *Observed) {
	o.Restore.Spec.ClusterTemplate = &v1beta2.EtcdClusterTemplate{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"x": "y"}},
		Spec:       v1beta2.ClusterSpec{Version: "3.6.16", Replicas: ptr.To[int32](1)},
	}
}

func filling(o *Observed) {
	o.Cluster.Status = v1beta2.ClusterStatus{}
	o.Cluster.Annotations = map[string]string{v1beta2.AnnotationRestore: "r", v1beta2.AnnotationRestoreUID: "uid-r"}
}

func in(phase v1beta2.RestorePhase) func(*Observed) {
	return func(o *Observed) { o.Restore.Status.Phase = phase }
}

// checked adds a Job with an outcome; nil while it runs.
func checked(attempt int32, outcome *Outcome, edits ...func(*Job)) func(*Observed) {
	return func(o *Observed) {
		j := Job{Job: job.Job{Name: fmt.Sprintf("j%d", attempt), Created: epoch, Started: true}, Attempt: attempt, Target: target, Outcome: outcome}
		for _, edit := range edits {
			edit(&j)
		}
		o.Jobs = append(o.Jobs, j)
	}
}

func onLostNode(j *Job) { j.LostNode = &job.LostNode{Since: epoch.Add(time.Minute), Message: "lost"} }

func good() *Outcome {
	return &Outcome{Succeeded: true, Key: "key/dir/snapshot.db", SHA256: "abc", Revision: 42, Size: 1000, EtcdVersion: "3.6.16", Verified: true, Completion: epoch}
}

// of has a cluster and a backup that fits it be of a version.
func of(version string) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Spec.Version = version
		checked(1, good(), func(j *Job) { j.Target = o.target().String() })(o)
	}
}

func bad(reason string, retryable bool) *Outcome {
	return &Outcome{Reason: reason, Message: "because", Retryable: retryable, Completion: epoch.Add(time.Minute)}
}

func recovery(phase v1beta2.RecoveryPhase, edits ...func(*v1beta2.RecoveryStatus)) func(*Observed) {
	return func(o *Observed) {
		r := &v1beta2.RecoveryStatus{ID: "uid-r", Trigger: v1beta2.RecoveryTriggerRestore, Phase: phase, RecoveryMember: "c-seed", RevisionBump: 1000}
		for _, edit := range edits {
			edit(r)
		}
		o.Cluster.Status.Recovery = r
	}
}

func cancelledAlready(r *v1beta2.RecoveryStatus) { r.Cancelled = true }
func notOwned(r *v1beta2.RecoveryStatus)         { r.ID = "other" }
func evicted(r *v1beta2.RecoveryStatus) {
	r.Message = "the pod of bootstrap member c-seed was deleted: Evicted: disk"
}

func filled(s RecoveryMember) func(*Observed) { return func(o *Observed) { o.RecoveryMember = &s } }

func rejectedBefore(o *Observed) {
	meta.SetStatusCondition(&o.Restore.Status.Conditions, metav1.Condition{
		Type: ConditionSucceeded, Status: metav1.ConditionFalse, Reason: "Corrupt", Message: "flipped",
	})
}

// fromBackup restores from an EtcdBackup.
func fromBackup(revision *int64) func(*Observed) {
	return func(o *Observed) {
		o.Restore.Spec.BackupStorageType, o.Restore.Spec.RestoreSource = "", v1beta2.RestoreSource{}
		o.Restore.Spec.Backup = &v1beta2.BackupReference{Name: "b", Revision: revision}
		o.Backup = &v1beta2.EtcdBackup{
			ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "ns"},
			Spec: v1beta2.BackupSpec{
				StorageType:  v1beta2.BackupStorageTypePersistentVolumeClaim,
				BackupSource: v1beta2.BackupSource{PersistentVolumeClaim: &v1beta2.PersistentVolumeClaimSource{ClaimName: "backups", Path: "p"}},
			},
			Status: v1beta2.BackupStatus{URI: "pvc://backups/p/b/new/snapshot.db", SHA256: "sum", EtcdRevision: 9, History: []v1beta2.BackupRecord{
				{URI: "pvc://backups/p/b/new/snapshot.db", Revision: 9, Succeeded: true},
				{Revision: 7},
				{URI: "pvc://backups/p/b/old/snapshot.db", Revision: 5, Succeeded: true, SHA256: "oldsum"},
			}},
		}
	}
}

// say puts a plan into a line.
func say(p Plan) string {
	text := string(p.Action)
	switch {
	case p.Check != nil:
		text += fmt.Sprintf(" %d of %s against %s", p.Check.Attempt, pathOf(&p.Check.Place), p.Check.Target)
		if p.Check.Place.SHA256 != "" {
			text += " sum " + p.Check.Place.SHA256
		}
	case p.Recovery != nil:
		text += fmt.Sprintf(" from %s sum %s bump %d", pathOf(p.Recovery.Source.Backup), p.Recovery.Source.Backup.SHA256,
			min(p.Recovery.RevisionBump, defaultBump)) // TestDefaultBump is about the rest
		if p.Recovery.OnlyIfUnresponsive {
			text += " only if unresponsive"
		}
	case p.Copy != nil:
		text += " to " + sourceOf(&p.Copy.Spec)
	case p.Cluster != nil:
		text += fmt.Sprintf(" %s of %d", p.Cluster.Spec.Version, *p.Cluster.Spec.Replicas)
	}
	if p.Copied != nil {
		text += fmt.Sprintf(" copied %d", p.Copied.Revision)
		if p.Copied.Unconfirmed {
			text += " unconfirmed"
		}
		if p.Copied.DataDiffers {
			text += " differs"
		}
	}
	if p.Rejected != nil {
		text += " rejected " + p.Rejected.Reason
	}
	if p.Record != nil {
		text += fmt.Sprintf(" record %t %s", p.Record.Succeeded, p.Record.Reason)
	}
	if p.Wait != nil {
		text += " wait " + p.Wait.Reason
	}
	if len(p.Delete) > 0 {
		text += " without " + strings.Join(p.Delete, ",")
	}
	return strings.TrimSpace(string(p.Phase) + ": " + strings.TrimSpace(text))
}

func pathOf(p *v1beta2.BackupPlace) string {
	switch {
	case p.S3 != nil:
		return p.S3.Path
	case p.ABS != nil:
		return p.ABS.Path
	case p.GCS != nil:
		return p.GCS.Path
	case p.OSS != nil:
		return p.OSS.Path
	default:
		return p.PersistentVolumeClaim.Path
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edits []func(*Observed)
		want  string
	}{
		// The backup is looked at before anything else.
		"first look":          {nil, "Verifying: verify 1 of bucket/key against " + target},
		"it runs":             {[]func(*Observed){checked(1, nil)}, "Verifying: wait Verifying"},
		"its Job terminates":  {[]func(*Observed){checked(1, good(), func(j *Job) { j.Deleting = true })}, "Verifying: wait JobTerminating"},
		"its node is lost":    {[]func(*Observed){checked(1, nil, onLostNode)}, "Verifying: wait NodeLost"},
		"its node stays lost": {[]func(*Observed){checked(1, nil, onLostNode), func(o *Observed) { o.Now = o.Now.Add(firstRetry) }}, "Verifying: verify 2 of bucket/key against " + target},
		"it does not start":   {[]func(*Observed){checked(1, nil, func(j *Job) { j.Started, j.Waiting, j.Created = false, "no PVC", epoch.Add(50*time.Second) })}, "Verifying: wait PodNotStarted"},
		"it gets no pod":      {[]func(*Observed){checked(1, nil, func(j *Job) { j.Started, j.Rejected, j.Waiting = false, true, "quota" })}, "Verifying: wait PodRejected"},
		"it gets no pod for ten minutes": {[]func(*Observed){checked(1, nil, func(j *Job) {
			j.Started, j.Rejected, j.Waiting, j.Created = false, true, "quota", epoch.Add(-time.Hour)
		})}, "Verifying: wait PodRejected"},
		"it has got one":          {[]func(*Observed){checked(1, nil, func(j *Job) { j.Started, j.Created, j.PodMade = false, epoch.Add(-time.Hour), epoch })}, "Verifying: wait Verifying"},
		"it never starts":         {[]func(*Observed){checked(1, nil, func(j *Job) { j.Started, j.Created = false, epoch.Add(-time.Hour) })}, "Verifying: record false PodNotStarted"},
		"it is corrupt":           {[]func(*Observed){checked(1, bad("Corrupt", false))}, "Verifying: record false Corrupt"},
		"the store fails":         {[]func(*Observed){checked(1, bad("StoreUnavailable", true))}, "Verifying: wait StoreUnavailable"},
		"the store failed once":   {[]func(*Observed){checked(1, bad("StoreUnavailable", true)), func(o *Observed) { o.Now = o.Now.Add(firstRetry) }}, "Verifying: verify 2 of bucket/key against " + target},
		"the store fails on":      {[]func(*Observed){checked(6, bad("x", true)), checked(maxAttempts, bad("StoreUnavailable", true))}, "Verifying: record false StoreUnavailable without j6"},
		"it must fit otherwise":   {[]func(*Observed){checked(1, good()), func(o *Observed) { o.Cluster.Spec.Version = "3.5.33" }}, "Verifying: verify 2 of bucket/key against 3.5.33/2147483648"},
		"it is encrypted":         {[]func(*Observed){checked(1, &Outcome{Succeeded: true, Encrypted: true, Verified: true, Key: "k", SHA256: "a"})}, "Verifying: record false Encrypted"},
		"nothing was verified":    {[]func(*Observed){checked(1, &Outcome{Succeeded: true, Key: "k", SHA256: "a"})}, "Verifying: record false Internal"},
		"its checksum is unknown": {[]func(*Observed){checked(1, &Outcome{Succeeded: true, Verified: true, Key: "k"})}, "Verifying: record false Internal"},
		"its location is unknown": {[]func(*Observed){checked(1, &Outcome{Succeeded: true, Verified: true, SHA256: "a"})}, "Verifying: record false Internal"},
		"it is opened":            {[]func(*Observed){held, decrypted, checked(1, &Outcome{Succeeded: true, Encrypted: true, Verified: true, Key: "k", SHA256: "a"})}, "Verifying: requestRecovery from bucket/k sum a bump 1000000000"},
		"old members are left": {[]func(*Observed){func(o *Observed) {
			o.Cluster.Status.MemberStatuses = []v1beta2.MemberStatus{{Name: "x", Unmanaged: true}}
		}}, "Verifying: record false Unsupported"},
		"the template is taken": {[]func(*Observed){templated}, "Verifying: record false ClusterExists"},

		// Sources.
		"no such EtcdBackup":    {[]func(*Observed){fromBackup(nil), func(o *Observed) { o.Backup = nil }}, "Verifying: wait BackupNotFound"},
		"no good backup yet":    {[]func(*Observed){fromBackup(nil), func(o *Observed) { o.Backup.Status = v1beta2.BackupStatus{} }}, "Verifying: wait NoBackupYet"},
		"newest of EtcdBackup":  {[]func(*Observed){fromBackup(nil)}, "Verifying: verify 1 of p/b/new/snapshot.db against " + target + " sum sum"},
		"older one":             {[]func(*Observed){fromBackup(ptr.To[int64](5))}, "Verifying: verify 1 of p/b/old/snapshot.db against " + target + " sum oldsum"},
		"a failed one":          {[]func(*Observed){fromBackup(ptr.To[int64](7))}, "Verifying: wait BackupNotFound"},
		"the newest by name":    {[]func(*Observed){fromBackup(ptr.To[int64](9))}, "Verifying: verify 1 of p/b/new/snapshot.db against " + target + " sum sum"},
		"one that failed later": {[]func(*Observed){fromBackup(ptr.To[int64](7)), func(o *Observed) { o.Backup.Status.History[1].URI = "pvc://backups/p/b/x" }}, "Verifying: wait BackupNotFound"},
		"one that is nowhere":   {[]func(*Observed){fromBackup(ptr.To[int64](7)), func(o *Observed) { o.Backup.Status.History[1].Succeeded = true }}, "Verifying: wait BackupNotFound"},
		"an EtcdBackup moved":   {[]func(*Observed){fromBackup(nil), func(o *Observed) { o.Backup.Status.URI = "s3://b/k" }}, "Verifying: wait InvalidRequest"},
		"an EtcdBackup goes on": {[]func(*Observed){fromBackup(nil), held, checked(1, good())}, "Verifying: requestRecovery from key/dir/snapshot.db sum abc bump 1000000000"},

		// In place.
		"it is held first": {[]func(*Observed){checked(1, good())}, "Verifying: addFinalizer"},
		"the cluster gets the request after the finalizer": {[]func(*Observed){checked(1, good()), held}, "Verifying: requestRecovery from bucket/key/dir/snapshot.db sum abc bump 1000000000"},
		"with another bump":                         {[]func(*Observed){checked(1, good()), held, func(o *Observed) { o.Restore.Spec.RevisionBump = ptr.To[int64](0) }}, "Verifying: requestRecovery from bucket/key/dir/snapshot.db sum abc bump 0"},
		"by an etcd that cannot bump":               {[]func(*Observed){of("3.4.26"), held}, "Verifying: requestRecovery from bucket/key/dir/snapshot.db sum abc bump 0"},
		"a bump that etcd does not support":         {[]func(*Observed){of("3.4.26"), held, func(o *Observed) { o.Restore.Spec.RevisionBump = ptr.To[int64](1) }}, "Verifying: record false Unsupported"},
		"by one that can":                           {[]func(*Observed){of("3.4.27"), held, func(o *Observed) { o.Restore.Spec.RevisionBump = ptr.To[int64](1) }}, "Verifying: requestRecovery from bucket/key/dir/snapshot.db sum abc bump 1"},
		"paused":                                    {[]func(*Observed){checked(1, good()), held, func(o *Observed) { o.Cluster.Spec.Paused = true }}, "Verifying: wait ClusterPaused"},
		"asleep":                                    {[]func(*Observed){checked(1, good()), held, func(o *Observed) { o.Cluster.Spec.Replicas = ptr.To[int32](0) }}, "Verifying: wait ClusterHibernated"},
		"going":                                     {[]func(*Observed){checked(1, good()), held, func(o *Observed) { o.Cluster.DeletionTimestamp = ptr.To(metav1.NewTime(epoch)) }}, "Verifying: wait ClusterTerminating"},
		"another recovery":                          {[]func(*Observed){checked(1, good()), held, recovery(v1beta2.RecoveryPhaseFilling, notOwned)}, "Verifying: wait RecoveryUnderWay"},
		"after another recovery":                    {[]func(*Observed){checked(1, good()), held, recovery(v1beta2.RecoveryPhaseSucceeded, notOwned)}, "Verifying: requestRecovery from bucket/key/dir/snapshot.db sum abc bump 1000000000"},
		"another restore starts":                    {[]func(*Observed){checked(1, good()), held, other(v1beta2.RestorePhaseStarting)}, "Verifying: wait AnotherRestore"},
		"another restore is under way":              {[]func(*Observed){checked(1, good()), held, other(v1beta2.RestorePhaseRestoring)}, "Verifying: wait AnotherRestore"},
		"another restore has no request yet":        {[]func(*Observed){checked(1, good()), held, other(v1beta2.RestorePhaseVerifying)}, "Verifying: requestRecovery from bucket/key/dir/snapshot.db sum abc bump 1000000000"},
		"the cluster has the request":               {[]func(*Observed){checked(1, good()), held, recovery(v1beta2.RecoveryPhasePending)}, "Restoring: wait Pending"},
		"the status records the revision":           {[]func(*Observed){checked(1, good()), held, recovery(v1beta2.RecoveryPhasePending), func(o *Observed) { o.Restore.Status.Revision = 42 }}, "Restoring: wait Pending without j1"},
		"it is filled":                              {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseFilling), in(v1beta2.RestorePhaseRestoring)}, "Restoring: wait Filling"},
		"it is tried again":                         {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseFilling, evicted)}, "Restoring: wait RecoveryMemberLost"},
		"it is evicted":                             {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseFilling, evicted), filled(RecoveryMember{Failing: &Wait{Reason: "Evicted", Message: "x"}})}, "Restoring: wait Evicted"},
		"it cannot be fetched":                      {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseFilling), filled(RecoveryMember{Failing: &Wait{Reason: "StoreUnavailable", Message: "x"}})}, "Restoring: wait StoreUnavailable"},
		"it gets no recovery member":                {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseFilling), blocked(v1beta2.ReasonPodRejected)}, "Restoring: wait PodRejected"},
		"it is blocked":                             {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseFilling), blocked("Other")}, "Restoring: wait Filling"},
		"it gets none later":                        {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseCutover), blocked(v1beta2.ReasonPodRejected)}, "Starting: wait PodRejected"},
		"an old member may run":                     {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseCutover), blocked(v1beta2.ReasonOldMemberMayRun)}, "Starting: wait OldMemberMayRun"},
		"it starts":                                 {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseFilling), filled(RecoveryMember{Revision: 1042})}, "Starting: wait Filling"},
		"it is corrupt now":                         {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseFilling), filled(RecoveryMember{Rejected: &Wait{Reason: "Corrupt", Message: "flipped"}})}, "Restoring: rejected Corrupt"},
		"the recovery is cancelled":                 {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseFilling), filled(RecoveryMember{Rejected: &Wait{Reason: "Corrupt", Message: "flipped"}}), rejectedBefore}, "Restoring: cancelRecovery wait Filling"},
		"cancelled, waits for the cluster":          {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseFilling, cancelledAlready), rejectedBefore}, "Restoring: wait Filling"},
		"cancelled and abandoned":                   {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseAbandoned), rejectedBefore}, "Restoring: record false Corrupt"},
		"abandoned by the cluster":                  {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseAbandoned)}, "Restoring: record false Abandoned"},
		"no way back":                               {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseCutover)}, "Starting: wait Cutover"},
		"paused while it is filled":                 {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseFilling), paused}, "Restoring: wait ClusterPaused"},
		"it is filled again, and cannot be fetched": {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseCutover), filled(RecoveryMember{Failing: &Wait{Reason: "StoreUnavailable", Message: "x"}})}, "Starting: wait StoreUnavailable"},
		"it is filled again, and corrupt now":       {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseCutover), filled(RecoveryMember{Rejected: &Wait{Reason: "Corrupt", Message: "flipped"}})}, "Starting: wait Corrupt"},
		"the same, and paused":                      {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseCutover), paused, filled(RecoveryMember{Rejected: &Wait{Reason: "Corrupt", Message: "flipped"}})}, "Starting: wait ClusterPaused"},
		"it was filled again":                       {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseCutover), filled(RecoveryMember{Revision: 1042})}, "Starting: wait Cutover"},
		"a published member restarts":               {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseCleaning), filled(RecoveryMember{Failing: &Wait{Reason: "RecoveryMemberNotStarted", Message: "x"}})}, "Starting: wait Cleaning"},
		"paused in the cutover":                     {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseCutover), paused}, "Starting: wait ClusterPaused"},
		"it proves itself":                          {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseCleaning)}, "Starting: wait Cleaning"},
		"it has":                                    {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseSucceeded)}, "Restoring: record true Restored"},
		"it was lost at once":                       {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseSucceeded, func(r *v1beta2.RecoveryStatus) { r.Message = "lost" })}, "Restoring: record false NotProved"},
		"the request is missing":                    {[]func(*Observed){held, in(v1beta2.RestorePhaseRestoring)}, "Restoring: wait RecoveryNotReported"},
		"the request is missing for a while":        {[]func(*Observed){held, in(v1beta2.RestorePhaseRestoring), missingSince(lostGrace - time.Second)}, "Restoring: wait RecoveryNotReported"},
		"the request no longer exists":              {[]func(*Observed){held, in(v1beta2.RestorePhaseRestoring), missingSince(lostGrace)}, "Restoring: record false RecoveryLost"},
		"the request is back":                       {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseCutover), missingSince(lostGrace)}, "Starting: wait Cutover"},
		"the record has the request alone":          {[]func(*Observed){held, in(v1beta2.RestorePhaseRestoring), missingSince(time.Hour), blocked(v1beta2.ReasonWaitingForRestore)}, "Verifying: verify 1 of bucket/key against " + target},
		"the cluster is deleted":                    {[]func(*Observed){held, in(v1beta2.RestorePhaseStarting), terminating}, "Starting: record false ClusterDeleted"},
		"a user cancels it":                         {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseFilling, cancelledAlready), filled(RecoveryMember{Rejected: &Wait{Reason: "Corrupt", Message: "x"}})}, "Restoring: wait Filling"},
		"not verified is no rejection":              {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseAbandoned), untrue(ConditionVerified)}, "Restoring: record false Abandoned"},
		"Jobs stay until the status records them":   {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseSucceeded), checked(1, good()), func(o *Observed) { o.Restore.Status.Revision = 42 }}, "Restoring: record true Restored"},
		"a Job that goes, goes once":                {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseFilling), checked(1, nil, going)}, "Restoring: wait Filling"},
		"a Job that is being deleted is not deleted again when the restore has ended": {[]func(*Observed){in(v1beta2.RestorePhaseSucceeded), checked(1, good(), going)}, "Succeeded:"},
		"no Job runs after the end":    {[]func(*Observed){in(v1beta2.RestorePhaseFailed), checked(1, nil)}, "Failed: without j1"},
		"the cluster no longer exists": {[]func(*Observed){held, in(v1beta2.RestorePhaseStarting), homeless}, "Starting: record false ClusterDeleted"},
		"it is over":                   {[]func(*Observed){held, in(v1beta2.RestorePhaseSucceeded), recovery(v1beta2.RecoveryPhaseSucceeded), checked(1, good())}, "Succeeded: removeFinalizer without j1"},
		"a log stays":                  {[]func(*Observed){in(v1beta2.RestorePhaseFailed), checked(1, bad("x", true)), checked(2, bad("x", true))}, "Failed: without j1"},

		// Once.
		"it was carried out before":                               {[]func(*Observed){restoredBefore("r", "old")}, "Verifying: record false AlreadyRestored"},
		"it was carried out before, and the backup has been read": {[]func(*Observed){restoredBefore("r", "old"), checked(1, good()), held}, "Verifying: record false AlreadyRestored"},
		"it repeats an earlier one that made the cluster":         {[]func(*Observed){restoredBefore("r", "old"), templated}, "Verifying: record false AlreadyRestored"},
		"it is what the cluster has":                              {[]func(*Observed){restoredBefore("r", "uid-r"), checked(1, good()), held}, "Verifying: requestRecovery from bucket/key/dir/snapshot.db sum abc bump 1000000000"},
		"another name asks for the same":                          {[]func(*Observed){restoredBefore("other", "old")}, "Verifying: verify 1 of bucket/key against " + target},
		"it repeats one that is under way":                        {[]func(*Observed){restoredBefore("r", "old"), func(o *Observed) { o.Cluster.Status.Restores[0].Time = nil }}, "Verifying: verify 1 of bucket/key against " + target},
		"it asks for other data":                                  {[]func(*Observed){restoredBefore("r", "old"), func(o *Observed) { o.Restore.Spec.S3.Path = "bucket/other" }}, "Verifying: verify 1 of bucket/other against " + target},
		"it asks by another way to fetch it":                      {[]func(*Observed){restoredBefore("r", "old"), func(o *Observed) { o.Restore.Spec.ServiceAccountName = "sa" }}, "Verifying: record false AlreadyRestored"},
		"it asks for it again":                                    {[]func(*Observed){restoredBefore("r", "old"), again("1")}, "Verifying: verify 1 of bucket/key against " + target},
		"it asked for it again before":                            {[]func(*Observed){again("1"), restoredBefore("r", "old")}, "Verifying: record false AlreadyRestored"},
		"it is carried out again after a permanent loss":          {[]func(*Observed){restoredBefore("r", "old"), lostForGood}, "Verifying: verify 1 of bucket/key against " + target},
		"it is not carried out while the quorum is away":          {[]func(*Observed){restoredBefore("r", "old"), quorumLost(time.Hour)}, "Verifying: record false AlreadyRestored"},
		"the loss ends before the request":                        {[]func(*Observed){restoredBefore("r", "old"), checked(1, good()), held, quorumLost(time.Hour)}, "Verifying: record false AlreadyRestored"},
		"the cluster has not said yet what was carried out":       {[]func(*Observed){checked(1, good()), held, func(o *Observed) { o.Cluster.Status = v1beta2.ClusterStatus{} }}, "Verifying: wait ClusterNotObserved"},
		"it stays over when the quorum is lost later":             {[]func(*Observed){restoredBefore("r", "old"), lostForGood, in(v1beta2.RestorePhaseFailed)}, "Failed:"},

		// New clusters.
		"by template":           {[]func(*Observed){homeless, templated, checked(1, good()), held}, "Verifying: createCluster 3.6.16 of 1"},
		"checked for it before": {[]func(*Observed){homeless, templated, func(o *Observed) { o.Restore.Spec.ClusterTemplate.Spec.Version = "3.5.33" }}, "Verifying: verify 1 of bucket/key against 3.5.33/2147483648"},
		"of nothing":            {[]func(*Observed){homeless}, "Verifying: verify 1 of bucket/key against /0"},
		"of the backup":         {[]func(*Observed){homeless, held, checked(1, good(), unknownTarget)}, "Verifying: createCluster 3.6.16 of 3"},
		"not at once":           {[]func(*Observed){homeless, held, checked(1, good(), unknownTarget), func(o *Observed) { o.Now = epoch.Add(time.Second) }}, "Verifying: wait ClusterNotFound"},
		"after three seconds":   {[]func(*Observed){homeless, held, checked(1, good(), unknownTarget), func(o *Observed) { o.Now = epoch.Add(3 * time.Second) }}, "Verifying: createCluster 3.6.16 of 3"},
		"that cannot bump": {[]func(*Observed){homeless, held, checked(1, &Outcome{Succeeded: true, Key: "k", SHA256: "a", Verified: true, EtcdVersion: "3.4.23"}, unknownTarget), func(o *Observed) {
			o.Restore.Spec.RevisionBump = ptr.To[int64](1)
		}}, "Verifying: record false Unsupported"},
		"of an unknown version":                            {[]func(*Observed){homeless, held, checked(1, &Outcome{Succeeded: true, Key: "k", SHA256: "a", Verified: true}, unknownTarget)}, "Verifying: wait ClusterNotFound"},
		"it fits what it made":                             {[]func(*Observed){filling, held, checked(1, good(), unknownTarget)}, "Verifying: requestRecovery from bucket/key/dir/snapshot.db sum abc bump 0"},
		"not if it is larger":                              {[]func(*Observed){filling, held, checked(1, &Outcome{Succeeded: true, Key: "k", SHA256: "a", EtcdVersion: "3.6.16", Verified: true, Size: 1 << 40}, unknownTarget)}, "Verifying: verify 2 of bucket/key against " + target},
		"not if the backup is of another version":          {[]func(*Observed){filling, held, checked(1, good(), unknownTarget), func(o *Observed) { o.Cluster.Spec.Version = "3.5.33" }}, "Verifying: verify 2 of bucket/key against 3.5.33/2147483648"},
		"not if the backup was checked for another target": {[]func(*Observed){filling, held, checked(1, good(), func(j *Job) { j.Target = "3.6.16/1" })}, "Verifying: verify 2 of bucket/key against " + target},
		"not if the template declares another target":      {[]func(*Observed){filling, templated, held, checked(1, good(), unknownTarget)}, "Verifying: verify 2 of bucket/key against " + target},
		"a user made it":                                   {[]func(*Observed){held, checked(1, good(), unknownTarget)}, "Verifying: verify 2 of bucket/key against " + target},

		// Deletion.
		"deleted before":                       {[]func(*Observed){deleted, checked(1, good())}, ":"},
		"deleted in time":                      {[]func(*Observed){deleted, held, recovery(v1beta2.RecoveryPhaseFilling)}, ": cancelRecovery"},
		"deleted before it began":              {[]func(*Observed){deleted, held, recovery(v1beta2.RecoveryPhasePending)}, ": cancelRecovery"},
		"deleted, and the recovery member too": {[]func(*Observed){deleted, held, recovery(v1beta2.RecoveryPhaseFilling, cancelledAlready)}, ":"},
		"deleted in a pause":                   {[]func(*Observed){deleted, held, recovery(v1beta2.RecoveryPhaseFilling, cancelledAlready), paused}, ": wait ClusterPaused"},
		"deleted too late":                     {[]func(*Observed){deleted, held, recovery(v1beta2.RecoveryPhaseCutover)}, ": removeFinalizer"},
		"deleted and abandoned":                {[]func(*Observed){deleted, held, recovery(v1beta2.RecoveryPhaseAbandoned)}, ": removeFinalizer"},
		"what it has made goes":                {[]func(*Observed){deleted, held, filling, recovery(v1beta2.RecoveryPhaseAbandoned)}, ": deleteCluster"},
		"the cluster that the restore has made is deleted if no recovery began": {[]func(*Observed){deleted, held, filling}, ": deleteCluster"},
		"not what serves": {[]func(*Observed){deleted, held, filling, func(o *Observed) { o.Cluster.Status.Phase = v1beta2.ClusterPhaseRunning }}, ": removeFinalizer"},
		"a cluster that is already being deleted is not deleted again": {[]func(*Observed){deleted, held, filling, terminating}, ": removeFinalizer"},
		"not past the cutover":             {[]func(*Observed){deleted, held, filling, recovery(v1beta2.RecoveryPhaseCleaning)}, ": removeFinalizer"},
		"not a cluster of another restore": {[]func(*Observed){deleted, held, filling, func(o *Observed) { o.Cluster.Annotations[v1beta2.AnnotationRestoreUID] = "x" }}, ": removeFinalizer"},
		"nothing is left":                  {[]func(*Observed){deleted, held, homeless}, ": removeFinalizer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := observed(test.edits...)
			plan := Decide(o)
			if diff := cmp.Diff(test.want, say(plan)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			status := Status(o, plan)
			if status.Succeeded && (plan.Record == nil || !plan.Record.Succeeded) {
				t.Errorf("succeeded without a reason: %+v", status)
			}
			waits := plan.Action == ActionNone && plan.Record == nil && plan.Rejected == nil && !o.hasEnded() && o.Restore.DeletionTimestamp == nil
			if waits && plan.RequeueAfter <= 0 {
				t.Error("it waits and is never looked at again")
			}
			o.Restore.Status = status
			if again := Status(o, Plan{Phase: plan.Phase, Wait: plan.Wait, Progress: plan.Progress}); plan.Record != nil && !cmp.Equal(again, status) {
				t.Errorf("an end is not final (-want +got):\n%s", cmp.Diff(status, again))
			}
		})
	}
}

// restoredBefore has the cluster carry out what the EtcdRestore asks for, by one called name.
func restoredBefore(name, uid string) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Status.Restores = []v1beta2.ClusterRestore{
			{Name: name, UID: uid, Request: request(o.Restore), Revision: 42, RevisionBump: 1000, Time: ptr.To(metav1.NewTime(epoch.Add(-time.Hour)))},
		}
	}
}

func again(value string) func(*Observed) {
	return func(o *Observed) {
		o.Restore.Annotations = map[string]string{v1beta2.AnnotationRestoreAgain: value}
	}
}

func lostForGood(o *Observed) {
	o.Cluster.Status.PermanentQuorumLossSince = ptr.To(metav1.NewTime(epoch.Add(-time.Hour)))
}

func terminating(o *Observed) { o.Cluster.DeletionTimestamp = ptr.To(metav1.NewTime(epoch)) }

func going(j *Job) { j.Deleting = true }

func untrue(condition string) func(*Observed) {
	return func(o *Observed) {
		meta.SetStatusCondition(&o.Restore.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionFalse, Reason: "X"})
	}
}

// missingSince has the status of the cluster not show the request for a time.
func missingSince(ago time.Duration) func(*Observed) {
	return func(o *Observed) {
		meta.SetStatusCondition(&o.Restore.Status.Conditions, metav1.Condition{
			Type: ConditionProgressing, Status: metav1.ConditionUnknown, Reason: ReasonRecoveryNotReported, LastTransitionTime: metav1.NewTime(o.Now.Add(-ago)),
		})
	}
}

func blocked(reason string) func(*Observed) {
	return func(o *Observed) { o.Cluster.Status.BlockedBy = &v1beta2.BlockedBy{Reason: reason, Message: "because"} }
}

func unknownTarget(j *Job) { j.Target = "/0" }

func other(phase v1beta2.RestorePhase) func(*Observed) {
	return func(o *Observed) {
		o.Others = []*v1beta2.EtcdRestore{{ObjectMeta: metav1.ObjectMeta{Name: "o"}, Status: v1beta2.RestoreStatus{Phase: phase}}}
	}
}

// TestStatusOfARejection tells why, and that nothing was touched.
func TestStatusOfARejection(t *testing.T) {
	t.Parallel()
	o := observed(checked(1, bad("Unsupported", false)))
	status := Status(o, Decide(o))
	verified := meta.FindStatusCondition(status.Conditions, ConditionVerified)
	succeeded := meta.FindStatusCondition(status.Conditions, ConditionSucceeded)
	if status.Phase != v1beta2.RestorePhaseFailed || status.Succeeded || status.Reason != "because" || status.CompletionTime == nil ||
		verified == nil || verified.Status != metav1.ConditionFalse || succeeded == nil || succeeded.Reason != "Unsupported" {
		t.Errorf("status %+v", status)
	}
}

// TestCutoverSaysHowItEnds: a recovery member that has lost its data and cannot be filled again is no reason to wait for
// ever. One that has data keeps it.
func TestCutoverSaysHowItEnds(t *testing.T) {
	t.Parallel()
	failing := &Wait{Reason: "StoreUnavailable", Message: "no route."}
	for name, test := range map[string]struct {
		member RecoveryMember
		want   string
	}{
		"without data": {RecoveryMember{Failing: failing, Fills: true, FailsToFill: true}, "no route; if the recovery member cannot be filled again, delete EtcdRestore r, which abandons the restore"},
		"its data is not known": {RecoveryMember{Failing: failing, Fills: true},
			"no route; if the recovery member cannot be filled again, delete EtcdRestore r, which abandons the restore if an old member has its pod or its PVC"},
		"with data":  {RecoveryMember{Failing: failing, Fills: true, Revision: 7}, "no route."},
		"on its PVC": {RecoveryMember{Failing: failing}, "no route."},
	} {
		plan := Decide(observed(held, recovery(v1beta2.RecoveryPhaseCutover), filled(test.member)))
		if plan.Wait == nil || plan.Wait.Message != test.want {
			t.Errorf("%s: %+v, want %q", name, plan.Wait, test.want)
		}
	}
}
