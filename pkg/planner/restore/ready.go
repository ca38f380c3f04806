// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"

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
		waited := o.Now.Sub(status.StartTime.Time)
		return job.Standing{
			Stalled: waited >= rowOf(plan.Wait.Reason).Bound,
			Reason:  plan.Wait.Reason, Message: plan.Wait.Message,
		}
	}
	progress := meta.FindStatusCondition(status.Conditions, ConditionProgressing)
	if progress == nil {
		return job.Standing{Reason: cmp.Or(string(status.Phase), ReasonVerifying)}
	}
	return job.Standing{Reason: progress.Reason, Message: progress.Message}
}
