// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
	"github.com/etcd-operator/etcd-operator/pkg/planner/waits"
)

// TestReady says what Flux and Helm make of the status of each stage.
func TestReady(t *testing.T) {
	t.Parallel()
	begun := func(ago time.Duration) func(*Observed) {
		return func(o *Observed) { o.Restore.Status.StartTime = job.StatusTime(o.Now.Add(-ago)) }
	}
	verified := func(ago time.Duration) func(*Observed) {
		return func(o *Observed) {
			o.Restore.Status.Conditions = append(o.Restore.Status.Conditions, metav1.Condition{
				Type: ConditionVerified, Status: metav1.ConditionTrue, Reason: ReasonVerified, LastTransitionTime: metav1.NewTime(o.Now.Add(-ago)),
			})
		}
	}
	stored := func(ago time.Duration) func(*Observed) {
		return func(o *Observed) { o.Restore.Status.PreRestoreBackup.Time = metav1.NewTime(o.Now.Add(-ago)) }
	}
	requested := func(ago time.Duration) func(*v1beta2.RecoveryStatus) {
		return func(r *v1beta2.RecoveryStatus) { r.RequestedAt = metav1.NewTime(epoch.Add(time.Minute - ago)) }
	}
	const day, copies = 24 * time.Hour, waits.Transfer + 1024*time.Second // the quota is 2 GiB
	ended := func(phase v1beta2.RestorePhase, reason string) func(*Observed) {
		return func(o *Observed) {
			o.Restore.Status.Phase = phase
			is := metav1.ConditionFalse
			if phase == v1beta2.RestorePhaseSucceeded {
				is = metav1.ConditionTrue
			}
			o.Restore.Status.Conditions = []metav1.Condition{{Type: ConditionSucceeded, Status: is, Reason: reason, Message: "as it was"}}
		}
	}
	for name, test := range map[string]struct {
		edits  []func(*Observed)
		want   status.Status
		reason string
	}{
		"new":               {nil, status.InProgressStatus, "Verifying"},
		"the backup is bad": {[]func(*Observed){checked(1, bad("HashMismatch", false))}, status.FailedStatus, "HashMismatch"},
		"the backup is read for as long as it may take":             {[]func(*Observed){checked(1, nil), begun(copies - time.Second), stored(day)}, status.InProgressStatus, "Verifying"},
		"the backup is read for ever":                               {[]func(*Observed){checked(1, nil), begun(copies), stored(day)}, status.FailedStatus, "Verifying"},
		"a Job terminates for ever":                                 {[]func(*Observed){checked(1, nil, func(j *Job) { j.Deleting = true }), begun(waits.Late), stored(day)}, status.FailedStatus, "JobTerminating"},
		"the store does not respond":                                {[]func(*Observed){checked(1, bad("StoreUnreachable", true))}, status.InProgressStatus, ""},
		"the cluster is paused":                                     {[]func(*Observed){checked(1, good()), held, paused}, status.InProgressStatus, "ClusterPaused"},
		"the cluster stays paused":                                  {[]func(*Observed){checked(1, good()), held, paused, begun(waits.Soon), verified(waits.Soon), stored(waits.Soon)}, status.FailedStatus, "ClusterPaused"},
		"the backup was read for a day":                             {[]func(*Observed){checked(1, good()), held, paused, begun(day), verified(0)}, status.InProgressStatus, "ClusterPaused"},
		"the pre-restore backup was stored for a day":               {[]func(*Observed){checked(1, good()), held, paused, begun(day), verified(day), stored(0)}, status.InProgressStatus, "ClusterPaused"},
		"the recovery was requested after a day":                    {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseFilling, requested(time.Hour)), begun(day), verified(day), stored(day)}, status.InProgressStatus, "Filling"},
		"the recovery may copy as much as the cluster has room for": {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseFilling, requested(copies-time.Second)), begun(day), verified(day), stored(day)}, status.InProgressStatus, "Filling"},
		"the recovery does not advance":                             {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseFilling, requested(copies)), begun(day), verified(day), stored(day)}, status.FailedStatus, "Filling"},
		"another restore goes first":                                {[]func(*Observed){checked(1, good()), held, other(v1beta2.RestorePhaseRestoring), begun(time.Hour)}, status.InProgressStatus, "AnotherRestore"},
		"the cluster goes over":                                     {[]func(*Observed){held, in(v1beta2.RestorePhaseRestoring), recovery(v1beta2.RecoveryPhaseCutover), begun(time.Hour)}, status.InProgressStatus, ""},
		"restored":                                                  {[]func(*Observed){held, in(v1beta2.RestorePhaseStarting), recovery(v1beta2.RecoveryPhaseSucceeded)}, status.CurrentStatus, "Restored"},
		"abandoned":                                                 {[]func(*Observed){held, in(v1beta2.RestorePhaseStarting), recovery(v1beta2.RecoveryPhaseAbandoned)}, status.FailedStatus, "Abandoned"},
		"succeeded before an update":                                {[]func(*Observed){ended(v1beta2.RestorePhaseSucceeded, "Restored")}, status.CurrentStatus, "Restored"},
		"failed before an update":                                   {[]func(*Observed){ended(v1beta2.RestorePhaseFailed, "Encrypted")}, status.FailedStatus, "Encrypted"},
	} {
		o := observed(test.edits...)
		o.Restore.Generation = 1
		shown := o.Restore.DeepCopy()
		shown.Status = Status(o, Decide(o))
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(shown)
		if err != nil {
			t.Fatal(err)
		}
		got, err := status.Compute(&unstructured.Unstructured{Object: object})
		if err != nil {
			t.Fatal(err)
		}
		ready := meta.FindStatusCondition(shown.Status.Conditions, v1beta2.ConditionReady)
		if ready == nil || got.Status != test.want || test.reason != "" && ready.Reason != test.reason {
			t.Errorf("%s: %s, want %s %s: %+v", name, got.Status, test.want, test.reason, ready)
		}
		again := o
		again.Restore = shown
		if s := Status(again, Decide(again)); shown.Status.CompletionTime != nil && meta.FindStatusCondition(s.Conditions, v1beta2.ConditionReady).Reason != ready.Reason {
			t.Errorf("%s: the condition Ready changes after the end of the restore", name)
		}
	}
}

// TestVersionOfANewCluster: a template without a version makes a cluster with the version
// of the backup, and the backup is not checked against another version.
func TestVersionOfANewCluster(t *testing.T) {
	t.Parallel()
	unversioned := func(o *Observed) { o.Restore.Spec.ClusterTemplate.Spec.Version = "" }
	look := Decide(observed(homeless, templated, unversioned))
	if look.Check == nil || look.Check.Target.Version != "" || look.Check.Target.MaxSize == 0 {
		t.Fatalf("the backup is checked against %+v", look.Check)
	}
	target := func(j *Job) { j.Target = look.Check.Target.String() }
	for _, test := range []struct{ backup, want string }{{"3.5.26", "3.5.26"}, {"", ""}} {
		found := good()
		found.EtcdVersion = test.backup
		made := Decide(observed(homeless, templated, unversioned, held, checked(1, found, target)))
		if made.Action != ActionCreateCluster || made.Cluster.Spec.Version != test.want {
			t.Fatalf("backup of %q: %s", test.backup, say(made))
		}
		if test.want == "" {
			continue
		}
		// The cluster that was made fits what was found, so that it is not looked at again.
		next := observed(templated, unversioned, held, checked(1, found, target), func(o *Observed) {
			o.Cluster = made.Cluster.DeepCopy()
			o.Cluster.UID = "made"
		})
		if plan := Decide(next); plan.Action != ActionRequestRecovery {
			t.Errorf("backup of %q: %s, not asked", test.backup, say(plan))
		}
	}
}

// TestRequestThatIsMissing: a status of the cluster from an earlier time does not show the request. The restore fails only
// after that has lasted, since the recovery may go on by the record, and it follows the recovery when that is shown again.
func TestRequestThatIsMissing(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{false, true} {
		o := observed(held, in(v1beta2.RestorePhaseStarting))
		for range 40 {
			o.Restore.Status = Status(o, Decide(o))
			o.Now = o.Now.Add(waitPeriod)
			if back && o.Now.After(epoch.Add(2*time.Minute)) {
				recovery(v1beta2.RecoveryPhaseCutover)(&o)
			}
			if !back && o.Now.Before(epoch.Add(2*time.Minute)) && o.Restore.Status.Phase != v1beta2.RestorePhaseStarting {
				t.Fatalf("the restore is %s at once", o.Restore.Status.Phase)
			}
		}
		if want := map[bool]v1beta2.RestorePhase{false: v1beta2.RestorePhaseFailed, true: v1beta2.RestorePhaseStarting}[back]; o.Restore.Status.Phase != want {
			t.Errorf("the recovery is shown again: %t: the restore is %s, want %s", back, o.Restore.Status.Phase, want)
		}
	}
}
