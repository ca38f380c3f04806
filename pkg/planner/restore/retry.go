// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
)

const (
	// firstRetry is how long the first retry waits; each further one waits twice as long.
	firstRetry = 5 * time.Second
	// lastRetry is the longest wait. Only an automatic restore reaches it.
	lastRetry = 10 * time.Minute
	// maxAttempts at reading a backup: about five minutes of trying. A user who asked for the restore then decides
	// again: a restore that began by itself hours later would replace what clients have written since.
	maxAttempts = 7
)

// retry makes the next attempt, waits until it is time for it, or ends the restore. The cluster of an automatic
// restore has no data that a late attempt could replace, and nothing else brings it back: no number of attempts ends it.
func (o *Observed) retry(plan Plan, place *v1beta2.BackupPlace, attempt int32, failed *Outcome) Plan {
	automatic := o.isAutomatic()
	switch {
	case !failed.Retryable:
		return plan.failed(failed.Reason, failed.Message)
	case !automatic && attempt >= maxAttempts:
		return plan.failed(failed.Reason, fmt.Sprintf("nothing was changed, and attempt %d was the last: %s; remove the cause, then create another EtcdRestore", attempt, failed.Message))
	case !automatic && failed.Reason == ReasonNotStarted:
		return plan.failed(failed.Reason, failed.Message) // one attempt has waited for longer than all others together
	}
	pause := job.Delay(firstRetry, lastRetry, int(attempt))
	// A clock that was set back does not make a retry wait longer than it would.
	if left := min(failed.Completion.Add(pause).Sub(o.Now), pause); left > 0 {
		plan.Wait = &Wait{Reason: failed.Reason, Message: fmt.Sprintf("attempt %d of %d failed: %s", attempt, maxAttempts, failed.Message)}
		if automatic {
			plan.Wait = &Wait{Reason: ReasonBackupUnreadable, Message: fmt.Sprintf("attempt %d to read the backup failed: %s: %s; while the quorum is permanently lost, the next attempt follows within %s; "+
				"remove the cause, or restore another backup with another EtcdRestore",
				attempt, failed.Reason, failed.Message, lastRetry)}
		}
		plan.RequeueAfter = left
		return plan
	}
	return o.check(plan, place, attempt+1)
}

// late is the outcome of a Job whose pod Kubernetes did not start in time.
func late(j *Job) *Outcome {
	return &Outcome{Reason: ReasonNotStarted, Message: j.LateMessage(), Retryable: true, Completion: j.LateAt()}
}

// lost is the outcome of a Job whose pod is on a lost node. A Job only reads, so that another may run beside its pod.
func lost(j *Job) *Outcome {
	return &Outcome{Reason: ReasonNodeLost, Message: j.LostNode.Message, Retryable: true, Completion: j.LostNode.Since}
}

// superseded returns the Jobs before the newest one.
func (o *Observed) superseded(newest *Job) []string {
	return slices.DeleteFunc(o.everyJob(), func(name string) bool { return name == newest.Name })
}
