// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

var epoch = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func newBackup(policy *v1beta2.BackupPolicy) *v1beta2.EtcdBackup {
	return &v1beta2.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "ns", UID: "u", Generation: 1, CreationTimestamp: metav1.NewTime(epoch)},
		Spec:       v1beta2.BackupSpec{EtcdCluster: &v1beta2.EtcdClusterRef{Name: "c"}, BackupPolicy: policy},
	}
}

// scene is one EtcdBackup in the hands of the planner.
type scene struct {
	*testing.T
	Observed
}

func newScene(t *testing.T, policy *v1beta2.BackupPolicy) *scene {
	return &scene{T: t, Observed: Observed{Now: epoch.Add(time.Second), Backup: newBackup(policy)}}
}

// step decides, writes the status and returns the plan.
func (s *scene) step() Plan {
	s.Helper()
	plan := Decide(s.Observed)
	s.Backup.Status = Status(s.Observed, plan)
	for _, name := range plan.Delete {
		for i := range s.Jobs {
			if s.Jobs[i].Name == name {
				s.Jobs = append(s.Jobs[:i:i], s.Jobs[i+1:]...)
				break
			}
		}
	}
	return plan
}

// begins expects that an attempt is begun, and gives it a Job.
func (s *scene) begins(scheduled time.Time, number int32) *Job {
	s.Helper()
	plan := s.step()
	if plan.Action != ActionSave || plan.Attempt.Number != number || !plan.Attempt.ScheduledTime.Equal(scheduled) {
		s.Fatalf("plan %+v, want attempt %d for %s", plan, number, scheduled)
	}
	s.Jobs = append(s.Jobs, Job{
		Job: job.Job{Name: scheduled.Format(time.RFC3339) + "/" + string('0'+number), Created: s.Now}, Attempt: plan.Attempt,
		Pruner: pruner(s.retained(), s.Held),
	})
	s.step()
	s.is(v1beta2.BackupPhaseRunning)
	return &s.Jobs[len(s.Jobs)-1]
}

// retained is the policy whose retention a Job applies that is created now.
func (s *scene) retained() *v1beta2.BackupPolicy {
	if s.Backup.IsHeld() {
		return nil
	}
	return s.Backup.Spec.BackupPolicy
}

// pruner is what a Job deletes that is created now.
func pruner(policy *v1beta2.BackupPolicy, held []string) *job.Pruner {
	if policy == nil || policy.MaxBackups == 0 {
		return nil
	}
	return &job.Pruner{Job: "j", Request: &agent.Request{
		Store: &agent.Store{Type: v1beta2.BackupStorageTypeS3, Bucket: "bucket"},
		Prune: &agent.Prune{Layout: manifest.LayoutSeries, Count: policy.MaxBackups, Keep: held},
	}}
}

// ends lets the newest Job end and the status say so.
func (s *scene) ends(after time.Duration, outcome Outcome) {
	s.Helper()
	s.Now = s.Now.Add(after)
	j := &s.Jobs[len(s.Jobs)-1]
	outcome.Start, outcome.Completion = j.Created, s.Now
	j.Started, j.Outcome = true, &outcome
	if plan := s.step(); plan.Record == nil || plan.Action != ActionNone || len(plan.Delete) > 0 {
		s.Fatalf("the outcome of the Job is not recorded first: %+v", plan)
	}
}

func (s *scene) is(phase v1beta2.BackupPhase) {
	s.Helper()
	if s.Backup.Status.Phase != phase {
		s.Fatalf("phase %q, want %q: %+v", s.Backup.Status.Phase, phase, s.Backup.Status)
	}
}

func (s *scene) condition(name string, status metav1.ConditionStatus, reason string) {
	s.Helper()
	c := meta.FindStatusCondition(s.Backup.Status.Conditions, name)
	if c == nil || c.Status != status || c.Reason != reason {
		s.Fatalf("condition %s is %+v, want %s %s", name, c, status, reason)
	}
}

// rests expects that nothing is done and the status stays as it is.
func (s *scene) rests() Plan {
	s.Helper()
	before := s.Backup.Status.DeepCopy()
	plan := s.step()
	if plan.Action != ActionNone || plan.Record != nil || len(plan.Delete) > 0 {
		s.Fatalf("not at rest: %+v", plan)
	}
	if diff := cmp.Diff(*before, s.Backup.Status); diff != "" {
		s.Fatalf("the status changes at rest:\n%s", diff)
	}
	return plan
}

func good(revision int64) Outcome {
	return Outcome{
		Succeeded: true, URI: "s3://bucket/" + time.Duration(revision).String(), Revision: revision, EtcdVersion: "3.6.16",
		SnapshotSize: 100, StoredSize: 50, SHA256: "ab", Member: "c-1", Verified: true,
	}
}

func bad() Outcome { return Outcome{Reason: "BucketNotFound", Message: "no such bucket"} }

func TestSingleBackup(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	j := s.begins(epoch, 1)
	j.Started, j.Progress = true, &v1beta2.TransferProgress{Bytes: 10, TotalBytes: 100}
	s.step()
	if p := s.Backup.Status.Progress; p == nil || p.Bytes != 10 {
		t.Errorf("progress %+v", p)
	}
	s.ends(3*time.Second, good(7))
	s.is(v1beta2.BackupPhaseSucceeded)
	status := &s.Backup.Status
	if !status.Succeeded || status.Reason != "" || status.EtcdRevision != 7 || !status.Verified || status.URI == "" || status.Member != "c-1" ||
		status.SnapshotSize != 100 || status.StoredSize != 50 || status.SHA256 != "ab" || status.Progress != nil || status.EtcdVersion != "3.6.16" ||
		!status.LastSuccessDate.Time.Equal(s.Now) || status.CompletionTime == nil || status.StartTime == nil || len(status.History) != 0 {
		t.Errorf("status %+v", status)
	}
	s.condition(ConditionSucceeded, metav1.ConditionTrue, "Stored")
	if plan := s.step(); len(plan.Delete) != 1 {
		t.Errorf("the Job stays: %+v", plan)
	}
	if plan := s.rests(); plan.RequeueAfter != 0 {
		t.Errorf("a backup that is done is looked at again after %s", plan.RequeueAfter)
	}
	s.Now = s.Now.Add(100 * time.Hour)
	s.Backup.Generation++
	if plan := s.step(); plan.Action != ActionNone {
		t.Errorf("it is made again because its spec was changed: %+v", plan)
	}
}

func TestFailuresAreTriedAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	for number := int32(1); number <= maxAttempts; number++ {
		s.begins(epoch, number)
		s.ends(time.Second, bad())
		s.is(v1beta2.BackupPhaseFailed)
		if s.Backup.Status.Reason != "no such bucket" || s.Backup.Status.Succeeded {
			t.Fatalf("status %+v", s.Backup.Status)
		}
		s.condition(ConditionSucceeded, metav1.ConditionFalse, "BucketNotFound")
		if number == maxAttempts {
			break
		}
		s.condition(ConditionProgressing, metav1.ConditionTrue, "RetryScheduled")
		plan := s.step()
		if plan.Action != ActionNone || plan.RequeueAfter != backOff(number) {
			t.Fatalf("after %d failures: %+v", number, plan)
		}
		if len(s.Jobs) != 1 {
			t.Fatalf("%d Jobs of failures are kept", len(s.Jobs))
		}
		s.Now = s.Now.Add(plan.RequeueAfter - time.Second)
		s.rests()
		s.Now = s.Now.Add(time.Second)
	}
	s.step()
	s.condition(ConditionProgressing, metav1.ConditionFalse, "GaveUp")
	s.Now = s.Now.Add(1000 * time.Hour)
	s.rests()

	s.Backup.Generation++ // a user repairs the spec
	s.Now = s.Now.Add(time.Second)
	s.begins(s.Now, 1)
	s.ends(time.Second, good(1))
	s.is(v1beta2.BackupPhaseSucceeded)
}

// TestLostNode: another attempt follows a Job on a lost node, and the Job does not stay. Where both write under the same
// name, the backup waits for the end of the pod, and is Stalled after a while.
func TestLostNode(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	lost := &job.LostNode{Since: epoch, Message: "node n1 does not report the end of pod p"}
	j := s.begins(epoch, 1)
	j.Started, j.LostNode = true, lost
	if plan := s.step(); plan.Record == nil || plan.Record.Reason != ReasonNodeLost || plan.Record.Message != lost.Message {
		t.Fatalf("plan %+v", plan)
	}
	if s.step(); len(s.Jobs) != 0 {
		t.Errorf("the Job stays: %+v", s.Jobs)
	}
	s.Now = s.Now.Add(backOff(1))
	j = s.begins(epoch, 2)
	j.Started, j.LostNode, j.SharesKey = true, lost, true
	if plan := s.step(); plan.Record != nil || plan.Wait == nil || len(plan.Delete) > 0 {
		t.Fatalf("a pod that may still write is not waited for: %+v", plan)
	}
	s.condition(ConditionProgressing, metav1.ConditionTrue, ReasonNodeLost)
	s.Now = s.Now.Add(Waits[ReasonNodeLost].Bound)
	s.step()
	s.condition(v1beta2.ConditionStalled, metav1.ConditionTrue, ReasonNodeLost)
}

func TestPeriodicBackup(t *testing.T) {
	t.Parallel()
	s := newScene(t, &v1beta2.BackupPolicy{BackupIntervalInSecond: 300, MaxBackups: 2})
	for i := range 5 {
		scheduled := epoch.Add(time.Duration(i) * 300 * time.Second)
		s.begins(scheduled, 1)
		s.ends(20*time.Second, good(int64(i+1)))
		s.step()
		if plan := s.rests(); !s.Now.Add(plan.RequeueAfter).Equal(scheduled.Add(300 * time.Second)) {
			t.Fatalf("looked at again after %s at %s", plan.RequeueAfter, s.Now)
		}
		if next := s.Backup.Status.NextScheduleTime; next == nil || !next.Time.Equal(scheduled.Add(300*time.Second)) {
			t.Fatalf("next is %v", next)
		}
		s.Now = scheduled.Add(300 * time.Second)
	}
	if h := s.Backup.Status.History; len(h) != 2 || h[0].Revision != 5 || h[1].Revision != 4 || h[1].SHA256 != "ab" {
		t.Errorf("history %+v", h)
	}
	s.condition(ConditionRetentionApplied, metav1.ConditionTrue, "Pruned")

	// Failures of one scheduled time share one record, and a backup that follows replaces it.
	scheduled := s.Now
	s.begins(scheduled, 1)
	s.ends(time.Second, bad())
	s.Now = s.Now.Add(backOff(1))
	s.begins(scheduled, 2)
	s.ends(time.Second, bad())
	if h := s.Backup.Status.History; len(h) != 3 || h[0].Succeeded || h[0].Reason != "no such bucket" {
		t.Errorf("history %+v", h)
	}
	s.Now = s.Now.Add(backOff(2))
	s.begins(scheduled, 3)
	s.ends(time.Second, good(9))
	if h := s.Backup.Status.History; len(h) != 2 || h[0].Revision != 9 {
		t.Errorf("history %+v", h)
	}
	// What could not be deleted is remembered.
	s.Now = scheduled.Add(300 * time.Second)
	s.begins(s.Now, 1)
	left := good(10)
	left.Warning = "the store rejected the deletion"
	s.ends(time.Second, left)
	if len(s.Backup.Status.History) != 3 {
		t.Errorf("history %+v", s.Backup.Status.History)
	}
	s.condition(ConditionRetentionApplied, metav1.ConditionFalse, "PruneFailed")
}

func TestSomethingIsMissing(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	s.Source = &Wait{Reason: "NoMemberRuns", Message: "no member of EtcdCluster c runs"}
	if plan := s.step(); plan.Action != ActionNone || plan.RequeueAfter == 0 {
		t.Errorf("plan %+v", plan)
	}
	s.is(v1beta2.BackupPhasePending)
	s.condition(ConditionProgressing, metav1.ConditionTrue, "NoMemberRuns")
	if s.Backup.Status.Reason != s.Source.Message {
		t.Errorf("reason %q", s.Backup.Status.Reason)
	}
	s.rests()
	s.Source = nil
	s.begins(epoch, 1)
	if s.Backup.Status.Reason != "" {
		t.Errorf("reason %q while it runs", s.Backup.Status.Reason)
	}
}

// TestRejectedPodIsReportedAndCheckedOften: Kubernetes sends no event when it would accept
// the pod again, so the planner looks often.
func TestRejectedPodIsReportedAndCheckedOften(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	j := s.begins(epoch, 1)
	j.Rejected, j.Waiting = true, "exceeded quota"
	if plan := s.step(); plan.RequeueAfter > startPeriod {
		t.Errorf("it is looked at again after %s", plan.RequeueAfter)
	}
	s.condition(ConditionProgressing, metav1.ConditionTrue, ReasonRejected)
	s.Now = s.Now.Add(job.StartTimeout)
	if plan := s.step(); plan.Record == nil || !strings.Contains(plan.Record.Message, "exceeded quota") {
		t.Fatalf("plan %+v", plan)
	}
	s.Now = s.Now.Add(backOff(1))
	s.step()
	s.begins(epoch, 2)
}

func TestPodThatDoesNotStart(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	j := s.begins(epoch, 1)
	j.Waiting = `Unschedulable: persistentvolumeclaim "backups" not found`
	s.step()
	s.condition(ConditionProgressing, metav1.ConditionTrue, ReasonNotStarted)
	s.Now = s.Now.Add(job.StartTimeout)
	if plan := s.step(); plan.Record == nil || plan.Record.Reason != ReasonNotStarted || !strings.Contains(plan.Record.Message, "backups") {
		t.Fatalf("plan %+v", plan)
	}
	if plan := s.step(); len(plan.Delete) != 1 || plan.Action != ActionNone {
		t.Fatalf("the Job stays: %+v", plan)
	}
	s.Now = s.Now.Add(backOff(1))
	s.begins(epoch, 2)
}

func TestJobThatIsGone(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	s.begins(epoch, 1)
	s.Jobs = nil
	if plan := s.step(); plan.Record == nil || plan.Record.Reason != ReasonJobLost {
		t.Fatalf("plan %+v", plan)
	}
	s.is(v1beta2.BackupPhaseFailed)
	s.Now = s.Now.Add(backOff(1))
	s.begins(epoch, 2)
}

func TestScheduledTimeDuringRetry(t *testing.T) {
	t.Parallel()
	s := newScene(t, &v1beta2.BackupPolicy{BackupIntervalInSecond: 60})
	s.begins(epoch, 1)
	s.ends(100*time.Second, bad()) // longer than a period: nothing runs beside it
	s.step()
	s.begins(epoch.Add(60*time.Second), 1)
	if h := s.Backup.Status.History; len(h) != 1 || h[0].Succeeded {
		t.Errorf("history %+v", h)
	}
}

func TestEndOfAnEtcdBackup(t *testing.T) {
	t.Parallel()
	s := newScene(t, &v1beta2.BackupPolicy{BackupIntervalInSecond: 60})
	now := metav1.NewTime(s.Now)
	s.Backup.DeletionTimestamp, s.Backup.Finalizers = &now, []string{"someone/else"}
	if plan := Decide(s.Observed); plan.Action != ActionNone || plan.RequeueAfter != 0 {
		t.Errorf("plan %+v", plan)
	}
	s.Backup.Finalizers = append(s.Backup.Finalizers, AncestorFinalizer)
	if plan := Decide(s.Observed); plan.Action != ActionRemoveFinalizer {
		t.Errorf("plan %+v", plan)
	}
}
