// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Bounds of the history, whatever the retention. Of older backups the store alone
// knows. Records of what is held have a bound of their own: what is held for a time, or by its revision, is read from them.
const (
	maxFailuresKept = 10
	maxGoodKept     = 200
	maxHeldKept     = 200
)

// Conditions of an EtcdBackup.
const (
	// ConditionSucceeded: the newest backup is stored and proved good.
	ConditionSucceeded = "Succeeded"
	// ConditionProgressing: a backup is under way, or will begin without a request.
	ConditionProgressing = "Progressing"
	// ConditionRetentionApplied: backups that expired have been deleted. Absent if the last good backup had no retention.
	ConditionRetentionApplied = "RetentionApplied"
	// ConditionKept: the TTL is over, and the EtcdBackup stays because it is needed. Present only while it is True.
	ConditionKept = "Kept"
)

// Status reports the outcome of the backup, what runs and what the plan waits for. If
// nothing happened it is the old status again.
func Status(o Observed, plan Plan) v1beta2.BackupStatus {
	status := *o.Backup.Status.DeepCopy()
	meta.RemoveStatusCondition(&status.Conditions, v1beta2.ConditionStatusIncomplete) // the write of this status adds it again if it must
	status.ObservedGeneration = o.Backup.Generation
	status.NextScheduleTime = job.StatusTime(plan.Next)
	switch j := o.pending(); {
	case plan.Record != nil:
		record(&o, &status, plan.Attempt, plan.Record)
	case j != nil:
		run(&status, j)
	case plan.Action == ActionSave || plan.Action == ActionRecordDue || plan.Wait != nil:
		await(&o, &status, plan)
	case o.isSuspended() && status.Attempts == 0:
		suspend(&status)
	}
	status.Phase = phase(&o, &status)
	conditions(&o, &status, plan)
	o.standing(&status, plan).Write(&status.Conditions, o.Backup.Generation, o.Now)
	return status
}

// record writes the outcome of an attempt into the status.
func record(o *Observed, status *v1beta2.BackupStatus, a Attempt, outcome *Outcome) {
	status.LastScheduleTime = job.StatusTime(a.ScheduledTime)
	status.Attempts = a.Number
	status.StartTime = job.StatusTime(outcome.Start)
	status.CompletionTime = job.StatusTime(outcome.Completion)
	if status.StartTime == nil {
		status.StartTime = status.CompletionTime
	}
	status.Progress = nil
	status.Succeeded = outcome.Succeeded
	status.Reason = ""
	if outcome.Succeeded {
		status.LastSuccessDate = *status.CompletionTime
		status.EtcdVersion = outcome.EtcdVersion
		status.EtcdRevision = outcome.Revision
		status.URI = outcome.URI
		status.SnapshotSize = outcome.SnapshotSize
		status.StoredSize = outcome.StoredSize
		status.SHA256 = outcome.SHA256
		status.Member = outcome.Member
		status.Verified, status.VerifiedBy, status.Unconfirmed, status.RaftIndex = outcome.Verified, outcome.VerifiedBy, outcome.Unconfirmed, outcome.RaftIndex
		status.DataDiffers = outcome.DataDiffers
	} else {
		status.Reason = outcome.Message
	}
	if o.isPeriodic() {
		remember(o, status, a, outcome)
	}
}

// remember puts an attempt in front of the history. Failed attempts for one scheduled time share
// one record.
func remember(o *Observed, status *v1beta2.BackupStatus, a Attempt, outcome *Outcome) {
	made := v1beta2.BackupRecord{
		StartTime:      *status.StartTime,
		CompletionTime: status.CompletionTime.DeepCopy(),
		Succeeded:      outcome.Succeeded,
		URI:            outcome.URI,
		Revision:       outcome.Revision,
		StoredSize:     outcome.StoredSize,
		SHA256:         outcome.SHA256,
		Verified:       outcome.Verified,
		VerifiedBy:     outcome.VerifiedBy,
		Unconfirmed:    outcome.Unconfirmed,
		DataDiffers:    outcome.DataDiffers,
	}
	if !outcome.Succeeded {
		made.Reason = outcome.Message
	}
	history := status.History
	if a.Number > 1 && len(history) > 0 && !history[0].Succeeded && !history[0].StartTime.Time.Before(a.ScheduledTime) {
		history = history[1:]
	}
	history = append([]v1beta2.BackupRecord{made}, history...)
	if j := o.job(a); j != nil && j.Pruner != nil && outcome.Warning == "" {
		expired := Expired(resources.Dated(history), j.retention(), earlier(o.Now, a.ScheduledTime))
		history = without(history, slices.DeleteFunc(expired, func(r v1beta2.BackupRecord) bool { return !j.Pruner.Endangers(r.URI) }))
	}
	status.History = bounded(history, o.Held)
}

// earlier returns the earlier of two times. The agent counts ages from the time at which the
// backup was due if that is earlier than all other clocks.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// without returns a history without what the agent has deleted. The agent judges what is in the store by the same rules,
// and deletes nothing that was due later than what it has stored.
func without(history, expired []v1beta2.BackupRecord) []v1beta2.BackupRecord {
	last := history[0].StartTime
	return slices.DeleteFunc(history, func(r v1beta2.BackupRecord) bool {
		return !r.StartTime.After(last.Time) && slices.ContainsFunc(expired, func(e v1beta2.BackupRecord) bool { return e.URI == r.URI })
	})
}

// bounded keeps the newest of what would let the object grow for ever, and what is held beside it. Of more than maxHeldKept
// held ones the oldest stay, and the others count as those that are not held. The newest without a doubt stays, however many
// follow it, as under an alarm that lasts: the agent keeps it in the store, and a restore finds it here.
func bounded(history []v1beta2.BackupRecord, held []string) []v1beta2.BackupRecord {
	isHeld := func(r v1beta2.BackupRecord) bool { return r.Succeeded && slices.Contains(held, r.URI) }
	good, failed, beyond := 0, 0, -maxHeldKept
	for _, r := range history {
		if isHeld(r) {
			beyond++
		}
	}
	proved := slices.IndexFunc(history, func(r v1beta2.BackupRecord) bool { return r.Succeeded && !r.Unconfirmed && !r.DataDiffers })
	i := -1
	return slices.DeleteFunc(history, func(r v1beta2.BackupRecord) bool {
		i++
		switch {
		case !r.Succeeded:
			failed++
			return failed > maxFailuresKept
		case isHeld(r) && beyond <= 0:
			return false
		case isHeld(r):
			beyond--
		}
		good++
		return good > maxGoodKept && i != proved
	})
}

// run says that an attempt is under way.
func run(status *v1beta2.BackupStatus, j *Job) {
	if !timeOf(status.LastScheduleTime).Equal(j.Attempt.ScheduledTime) || status.Attempts != j.Attempt.Number {
		status.Progress = nil
	}
	status.LastScheduleTime = job.StatusTime(j.Attempt.ScheduledTime)
	status.Attempts = j.Attempt.Number
	status.StartTime = job.StatusTime(j.Created)
	status.CompletionTime = nil
	if j.Attempt.Number == 1 {
		status.Reason = ""
	}
	if job.IsNoticeable(status.Progress, j.Progress) {
		status.Progress = j.Progress.DeepCopy()
	}
}

// await says that an attempt is due and has not begun. A first one begins the status of
// its scheduled time; a retry keeps what is known of the attempt before.
func await(o *Observed, status *v1beta2.BackupStatus, plan Plan) {
	a := plan.Attempt
	if a.Number != 1 {
		return
	}
	if plan.Wait != nil && plan.Wait == o.Source {
		status.Reason = plan.Wait.Message
	}
	status.LastScheduleTime = job.StatusTime(a.ScheduledTime)
	status.Attempts = 0
	status.Progress = nil
}

// suspend takes back what await said of an attempt that will not begin for now.
func suspend(status *v1beta2.BackupStatus) {
	status.Reason = ""
	if c := meta.FindStatusCondition(status.Conditions, ConditionSucceeded); c != nil && c.Status == metav1.ConditionFalse {
		status.Reason = c.Message
	}
}

// phase sums a status up. Failed may be followed by another attempt, which the
// conditions tell. An attempt that was due and had not begun when the backup was
// suspended is not pending: the outcome of the one before it stands.
func phase(o *Observed, status *v1beta2.BackupStatus) v1beta2.BackupPhase {
	switch {
	case status.Attempts == 0 && (status.CompletionTime == nil || !o.isSuspended()):
		return v1beta2.BackupPhasePending
	case status.CompletionTime == nil:
		return v1beta2.BackupPhaseRunning
	case status.Succeeded:
		return v1beta2.BackupPhaseSucceeded
	default:
		return v1beta2.BackupPhaseFailed
	}
}

func conditions(o *Observed, status *v1beta2.BackupStatus, plan Plan) {
	set := func(t string, is metav1.ConditionStatus, reason, message string) {
		job.SetCondition(&status.Conditions, o.Backup.Generation, o.Now, t, is, reason, message)
	}
	ended := plan.Record
	if ended != nil && ended.Reason == ReasonRestoreBegan {
		ended = nil // the controller ended it, which says nothing of whether a backup can be stored
	}
	switch {
	case ended != nil && ended.Succeeded && ended.DataDiffers:
		set(ConditionSucceeded, metav1.ConditionTrue, ReasonStoredDataDiffers, "the backup is stored at "+ended.URI+
			". etcd reported that the data of its members differed (alarm CORRUPT), so the backup may have the wrong data. "+
			"Replace the member that differs as docs/how-to/corrupt-member.md says, disarm the alarm, and make another backup")
	case ended != nil && ended.Succeeded && ended.Unconfirmed:
		set(ConditionSucceeded, metav1.ConditionTrue, ReasonStoredUnconfirmed, "the backup is stored at "+ended.URI+
			". No quorum confirmed that the member had every write, so the newest writes may be missing. When a quorum serves, make another backup")
	case ended != nil && ended.Succeeded:
		set(ConditionSucceeded, metav1.ConditionTrue, ReasonStored, "the backup is stored at "+ended.URI)
	case ended != nil:
		set(ConditionSucceeded, metav1.ConditionFalse, ended.Reason, ended.Message)
	case meta.FindStatusCondition(status.Conditions, ConditionSucceeded) == nil:
		set(ConditionSucceeded, metav1.ConditionUnknown, ReasonNotYet, "no attempt has ended yet")
	}
	is, reason, message := progressing(o, status, plan)
	set(ConditionProgressing, is, reason, message)
	meta.RemoveStatusCondition(&status.Conditions, ConditionKept)
	if kept := plan.Kept; kept != nil {
		set(ConditionKept, metav1.ConditionTrue, kept.Reason, kept.Message)
	}
	switch {
	case plan.Record == nil || !plan.Record.Succeeded:
	case o.job(plan.Attempt).retention().isUnlimited():
		meta.RemoveStatusCondition(&status.Conditions, ConditionRetentionApplied) // of a retention that is no longer applied
	case plan.Record.Warning != "":
		set(ConditionRetentionApplied, metav1.ConditionFalse, ReasonPruneFailed, plan.Record.Warning)
	default:
		set(ConditionRetentionApplied, metav1.ConditionTrue, ReasonPruned, retained(plan.Record))
	}
}

// retained says what is in the store beside the backups that are to be kept.
func retained(o *Outcome) string {
	message := "no expired backup is in the store"
	if o.Spared != "" {
		message += "; " + o.Spared + " is the last backup of the earlier cluster with this name, so it is kept beyond the count. " +
			"It expires by age. To free the space now, delete its directory from the store"
	}
	if o.Unproved > 0 {
		message += fmt.Sprintf("; %d backups of another cluster with this name are never deleted: another EtcdBackup has stored them, "+
			"perhaps in another Kubernetes cluster. If nothing needs them, delete them from the store, at %s", o.Unproved, o.UnprovedAt)
	}
	return message
}

// progressing says what is under way and what will be.
func progressing(o *Observed, status *v1beta2.BackupStatus, plan Plan) (is metav1.ConditionStatus, reason, message string) {
	retries := status.Attempts < maxAttempts
	switch {
	case status.Phase == v1beta2.BackupPhaseRunning && plan.Wait == nil:
		return metav1.ConditionTrue, ReasonRunning, fmt.Sprintf("attempt %d runs", status.Attempts)
	case plan.Wait != nil:
		return metav1.ConditionTrue, plan.Wait.Reason, plan.Wait.Message
	case o.isSuspended():
		return metav1.ConditionFalse, ReasonSuspended, "spec.backupPolicy.suspend is true"
	case status.Phase == v1beta2.BackupPhasePending:
		return metav1.ConditionTrue, ReasonDue, "the backup is about to begin"
	case status.Phase == v1beta2.BackupPhaseFailed && retries:
		at := timeOf(status.CompletionTime).Add(backOff(status.Attempts))
		return metav1.ConditionTrue, ReasonRetryScheduled, fmt.Sprintf("attempt %d of %d failed; the next attempt starts at %s",
			status.Attempts, maxAttempts, at.UTC().Format(time.RFC3339))
	case !plan.Next.IsZero():
		return metav1.ConditionTrue, ReasonScheduled, "the next backup is due at " + plan.Next.UTC().Format(time.RFC3339)
	case status.Phase == v1beta2.BackupPhaseFailed:
		return metav1.ConditionFalse, ReasonGaveUp, fmt.Sprintf("%d attempts failed; to try again, change the spec or create another EtcdBackup", status.Attempts)
	default:
		return metav1.ConditionFalse, job.ReasonComplete, ""
	}
}
