// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// verifying tells what a Job does that runs.
const verifying = "the backup is read and checked; nothing has been changed"

// ruleVerify has the backup read and checked before anything else is done.
func ruleVerify(o *Observed) (Plan, bool) {
	plan := Plan{Phase: v1beta2.RestorePhaseVerifying}
	if o.Restore.Spec.ClusterTemplate != nil && o.Cluster != nil && !o.isMade() {
		return plan.failed(ReasonClusterExists, fmt.Sprintf(
			"EtcdCluster %s exists and spec.clusterTemplate asks for a new one: name another cluster, or remove the template to restore in place",
			o.Cluster.Name)), true
	}
	if o.Cluster != nil && slices.ContainsFunc(o.Cluster.Status.MemberStatuses, func(m v1beta2.MemberStatus) bool { return m.Unmanaged }) {
		return plan.failed(ReasonUnsupported, fmt.Sprintf(
			"EtcdCluster %s has members that another program runs, which a restore in place would leave with the old data: remove them, or restore into a new EtcdCluster",
			o.Cluster.Name)), true
	}
	if why := o.cannotBump(); why != "" {
		return plan.failed(ReasonUnsupported, why), true
	}
	place, wait := o.source()
	if wait != nil {
		plan.Wait = wait
		return plan, true
	}
	j := o.newest()
	if plan.Wait = o.awaitPruners(place, j); plan.Wait != nil {
		plan.Delete = o.everyJob() // what it has read may be deleted since
		return plan, true
	}
	if j == nil {
		return o.check(plan, place, 1), true
	}
	plan.Delete = o.superseded(j)
	switch {
	case j.Deleting:
		// Another Job of the same name follows.
		plan.Wait = &Wait{Reason: ReasonJobTerminating, Message: fmt.Sprintf("Kubernetes deletes Job %s; the backup is read again after that", j.Name)}
		return plan, true
	case j.Outcome == nil && j.LostNode != nil:
		return o.retry(plan, place, j.Attempt, lost(j)), true
	case j.Outcome == nil && !j.Rejected && j.IsLate(o.Now):
		return o.retry(plan, place, j.Attempt, late(j)), true
	case j.Outcome == nil:
		plan.Progress, plan.RequeueAfter = j.Progress, progressPeriod
		plan.Wait = cmp.Or(j.Unstarted(), &Wait{Reason: ReasonVerifying, Message: verifying})
		return o.backUpMeanwhile(plan, place, j), true
	case !j.Outcome.Succeeded:
		return o.retry(plan, place, j.Attempt, j.Outcome), true
	case j.Target != o.target().String() && !o.follows(j):
		return o.check(plan, place, j.Attempt+1), true // the target has changed since
	case j.Outcome.Encrypted && o.Restore.Spec.Decryption == nil:
		return plan.failed(ReasonEncrypted, "the backup is encrypted: name the Secret with the identities in spec.decryption of another EtcdRestore"), true
	case !j.Outcome.Verified || j.Outcome.SHA256 == "" || j.Outcome.Key == "":
		return plan.failed(ReasonInternal, "the agent did not report what it has verified; delete this EtcdRestore and create it again"), true
	default:
		return Plan{}, false
	}
}

// follows is true of a cluster that was made for what the Job has found, which therefore
// fits it.
func (o *Observed) follows(j *Job) bool {
	if !o.isMade() || !o.followsVersion() || resources.Version(o.Cluster) != j.Outcome.EtcdVersion {
		return false
	}
	fits := resources.RestoreTargetOf(o.Cluster)
	if o.Restore.Spec.ClusterTemplate == nil {
		return j.Target == resources.RestoreTarget{}.String() && j.Outcome.Size <= fits.MaxSize
	}
	return j.Target == resources.RestoreTarget{MaxSize: fits.MaxSize}.String()
}

// check makes the Job of an attempt.
func (o *Observed) check(plan Plan, place *v1beta2.BackupPlace, attempt int32) Plan {
	plan.Action = ActionVerify
	plan.Check = &resources.RestoreCheck{Attempt: attempt, Place: *place, Target: o.target(), Cluster: o.subject(), Job: o.jobPolicy()}
	return plan
}

// awaitPruners waits for the end of a Job that may delete what the restore reads. The planner of backups ends such a
// Job, and each Job that is created after the EtcdRestore keeps what the EtcdRestore reads. Only what was verified after
// that end is certain to stay.
func (o *Observed) awaitPruners(place *v1beta2.BackupPlace, j *Job) *Wait {
	if j != nil && j.Outcome != nil && j.Outcome.Succeeded {
		exact, wait := verified(place, j.Outcome)
		if wait != nil {
			return wait
		}
		place = exact
	}
	uri := backup.URIOf(place.StorageType, &place.RestoreSource)
	i := slices.IndexFunc(o.Pruners, func(p job.Pruner) bool { return p.Endangers(uri) })
	if i < 0 {
		return nil
	}
	p, end := &o.Pruners[i], "the controller ends that Job, and the restore continues after its pods have ended"
	if p.Overdue != "" {
		end = fmt.Sprintf("%s. The restore continues after that. If the node does not come back, make sure that node %s is off, then delete the pod: kubectl delete pod %s -n %s --force",
			diagnosis.MissingEnd(p.Overdue, p.Node), p.Node, p.Overdue, o.Restore.Namespace)
	}
	return &Wait{Reason: ReasonBackupMayBeDeleted, Message: fmt.Sprintf(
		"nothing was changed: Job %s began before this EtcdRestore was created, and its retention may delete %s; %s", p.Job, uri, end)}
}
