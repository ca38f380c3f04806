// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
)

// standing says whether the restore has succeeded, goes on, or cannot without a person.
func (o *Observed) standing(status *v1beta2.RestoreStatus, plan Plan) job.Standing {
	outcome := meta.FindStatusCondition(status.Conditions, ConditionSucceeded)
	reason, message := string(status.Phase), status.Reason
	if outcome != nil {
		reason, message = outcome.Reason, cmp.Or(outcome.Message, message)
	}
	switch {
	case status.Phase == v1beta2.RestorePhaseSucceeded:
		return job.Standing{Ready: true, Reason: reason, Message: message}
	case status.Phase == v1beta2.RestorePhaseFailed:
		return job.Standing{Stalled: true, Reason: reason, Message: message}
	case plan.Wait != nil:
		return job.Standing{
			Stalled: o.Now.Sub(o.lastStep(status)) >= rowOf(plan.Wait.Reason).Patience(o.target().MaxSize),
			Reason:  plan.Wait.Reason, Message: plan.Wait.Message,
		}
	}
	progress := meta.FindStatusCondition(status.Conditions, ConditionProgressing)
	if progress == nil {
		return job.Standing{Reason: cmp.Or(string(status.Phase), ReasonVerifying)}
	}
	return job.Standing{Reason: progress.Reason, Message: progress.Message}
}

// lastStep is when the restore has last advanced. The time that a large backup took to be read or stored does not count
// against what follows. An attempt is no step, so that a restore whose attempts fail is Stalled at last.
func (o *Observed) lastStep(status *v1beta2.RestoreStatus) time.Time {
	last := status.StartTime.Time
	step := func(t time.Time) {
		if t.After(last) && !t.After(o.Now) {
			last = t
		}
	}
	if c := meta.FindStatusCondition(status.Conditions, ConditionVerified); c != nil && c.Status == metav1.ConditionTrue {
		step(c.LastTransitionTime.Time)
	}
	if c := status.PreRestoreBackup; c != nil {
		step(c.Time.Time)
	}
	if r := o.recovery(); r != nil {
		step(r.RequestedAt.Time)
	}
	return last
}
