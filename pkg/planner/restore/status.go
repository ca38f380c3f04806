// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
)

// Conditions of an EtcdRestore.
const (
	// ConditionVerified: the backup was read and fits the cluster.
	ConditionVerified = "Verified"
	// ConditionSucceeded: the restored cluster has served a write.
	ConditionSucceeded = "Succeeded"
	// ConditionPreRestoreBackupRequired: a member of the cluster has responded during the restore, or might have when the
	// pre-restore backup began. The restore does not replace its data without that backup, unless a user suspends it.
	ConditionPreRestoreBackupRequired = "PreRestoreBackupRequired"
	// ConditionProgressing: something is under way, or is waited for.
	ConditionProgressing = "Progressing"
)

// Status reports the outcome of the restore, what runs and what the plan waits for. If
// nothing happened it is the old status again.
func Status(o Observed, plan Plan) v1beta2.RestoreStatus {
	status := *o.Restore.Status.DeepCopy()
	meta.RemoveStatusCondition(&status.Conditions, v1beta2.ConditionStatusIncomplete) // the write of this status adds it again if it must
	status.ObservedGeneration = o.Restore.Generation
	if o.hasEnded() {
		o.standing(&status, plan).Write(&status.Conditions, o.Restore.Generation, o.Now)
		return status
	}
	if plan.Phase != "" && !(status.Phase == v1beta2.RestorePhaseStarting && plan.Phase == v1beta2.RestorePhaseRestoring) {
		status.Phase = plan.Phase
	}
	if status.StartTime == nil {
		status.StartTime = job.StatusTime(o.Now)
	}
	if plan.Revision > 0 {
		status.Revision = plan.Revision
	}
	status.PreRestoreBackup = o.preRestoreBackup(plan.Copied)
	switch {
	case plan.Progress == nil && (plan.Phase != v1beta2.RestorePhaseVerifying || plan.Record != nil || plan.Action != ActionNone):
		status.Progress = nil
	case job.IsNoticeable(status.Progress, plan.Progress):
		status.Progress = plan.Progress.DeepCopy()
	}
	switch {
	case plan.Record != nil:
		record(&o, &status, plan.Record)
	case plan.Rejected != nil:
		status.Reason = plan.Rejected.Message
	}
	conditions(&o, &status, plan)
	o.standing(&status, plan).Write(&status.Conditions, o.Restore.Generation, o.Now)
	return status
}

// record writes down how the restore has ended.
func record(o *Observed, status *v1beta2.RestoreStatus, r *Record) {
	status.CompletionTime, status.Progress = job.StatusTime(o.Now), nil
	status.Succeeded, status.Reason, status.Phase = r.Succeeded, "", v1beta2.RestorePhaseSucceeded
	if !r.Succeeded {
		status.Reason, status.Phase = r.Message, v1beta2.RestorePhaseFailed
	}
}

func conditions(o *Observed, status *v1beta2.RestoreStatus, plan Plan) {
	set := func(t string, is metav1.ConditionStatus, reason, message string) {
		job.SetCondition(&status.Conditions, o.Restore.Generation, o.Now, t, is, reason, message)
	}
	switch {
	case isSuspended(o.PreRestore):
		set(ConditionPreRestoreBackupRequired, metav1.ConditionFalse, ReasonPreRestoreBackupSuspended, "a user has suspended EtcdBackup "+o.PreRestore.Name+", so the data is replaced without it")
	case o.hasSeenData() && !o.hasResponded() && status.PreRestoreBackup == nil:
		set(ConditionPreRestoreBackupRequired, metav1.ConditionTrue, ReasonMemberMayRespond, "a pre-restore backup was created while a member might still respond, and no member has responded since")
	case o.hasSeenData():
		set(ConditionPreRestoreBackupRequired, metav1.ConditionTrue, ReasonMemberResponded, "a member of the cluster has responded since the restore began")
	}
	isVerifying := cmp.Or(plan.Phase, o.Restore.Status.Phase, v1beta2.RestorePhaseVerifying) == v1beta2.RestorePhaseVerifying
	switch {
	case plan.Record != nil && isVerifying && !o.isVerified():
		set(ConditionVerified, metav1.ConditionFalse, plan.Record.Reason, plan.Record.Message)
	case !isVerifying || plan.Revision > 0 || plan.Record != nil:
		set(ConditionVerified, metav1.ConditionTrue, ReasonVerified, "the backup was read and fits the cluster")
	case meta.FindStatusCondition(status.Conditions, ConditionVerified) == nil:
		set(ConditionVerified, metav1.ConditionUnknown, ReasonNotYet, "the backup has not been read yet")
	}
	switch {
	case plan.Record != nil && plan.Record.Succeeded:
		set(ConditionSucceeded, metav1.ConditionTrue, plan.Record.Reason, plan.Record.Message)
	case plan.Record != nil:
		set(ConditionSucceeded, metav1.ConditionFalse, plan.Record.Reason, plan.Record.Message)
	case plan.Rejected != nil:
		set(ConditionSucceeded, metav1.ConditionFalse, plan.Rejected.Reason, plan.Rejected.Message)
	case meta.FindStatusCondition(status.Conditions, ConditionSucceeded) == nil:
		set(ConditionSucceeded, metav1.ConditionUnknown, ReasonNotYet, "the restored cluster has not served a write yet")
	}
	switch {
	case plan.Record != nil:
		set(ConditionProgressing, metav1.ConditionFalse, job.ReasonComplete, "")
	case plan.Wait != nil && plan.Wait.Reason == ReasonRecoveryNotReported:
		set(ConditionProgressing, metav1.ConditionUnknown, plan.Wait.Reason, plan.Wait.Message)
	case plan.Wait != nil:
		set(ConditionProgressing, metav1.ConditionTrue, plan.Wait.Reason, plan.Wait.Message)
	case isVerifying:
		set(ConditionProgressing, metav1.ConditionTrue, ReasonVerifying, verifying)
	default:
		set(ConditionProgressing, metav1.ConditionTrue, ReasonRestoring, "")
	}
}

// isVerified is true of a restore that ends for a reason beside its backup, which was read and found good.
func (o *Observed) isVerified() bool {
	j := o.newest()
	return meta.IsStatusConditionTrue(o.Restore.Status.Conditions, ConditionVerified) && j != nil && j.Outcome != nil && j.Outcome.Succeeded
}
