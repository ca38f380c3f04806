// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
	"github.com/etcd-operator/etcd-operator/pkg/planner/waits"
)

// standing says whether the backup is as its spec asks for: one that is made once is
// stored, and a periodic one stored the last backup that was due. A periodic one that
// makes its next backup stays Ready, so that a schedule does not look like a change.
func (o *Observed) standing(status *v1beta2.BackupStatus, plan Plan) job.Standing {
	is, reason, message := progressing(o, status, plan)
	isProgressing := is == metav1.ConditionTrue
	stored := meta.FindStatusCondition(status.Conditions, ConditionSucceeded)
	good := stored != nil && stored.Status == metav1.ConditionTrue
	tried := stored != nil && stored.Status != metav1.ConditionUnknown
	switch {
	case plan.Wait != nil && o.waitsTooLong(plan):
		return job.Standing{Stalled: true, Reason: plan.Wait.Reason, Message: plan.Wait.Message}
	case good && (o.isPeriodic() || !isProgressing):
		return job.Standing{Ready: true, Reason: stored.Reason, Message: stored.Message}
	case o.isPeriodic() && !tried && o.isSuspended():
		return job.Standing{Ready: true, Reason: reason, Message: message}
	case o.isPeriodic() && !tried && status.Phase == v1beta2.BackupPhasePending && plan.Action == ActionNone && plan.Wait == nil:
		return job.Standing{Ready: true, Reason: ReasonNoneDueYet, Message: "no backup has been due yet"}
	case isProgressing:
		return job.Standing{Reason: reason, Message: message}
	default:
		return job.Standing{Stalled: true, Reason: reason, Message: cmp.Or(message, status.Reason)}
	}
}

// waitsTooLong is true once what an attempt waits for will probably not come without a person.
func (o *Observed) waitsTooLong(plan Plan) bool {
	bound := waits.Late
	if row, found := Waits[plan.Wait.Reason]; found {
		bound = row.Bound
	}
	return o.Now.Sub(plan.Attempt.ScheduledTime) >= bound
}
