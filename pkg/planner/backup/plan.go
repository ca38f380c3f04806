// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Action is what is done.
type Action string

// Values of Action.
const (
	// ActionNone waits.
	ActionNone Action = ""
	// ActionSave makes the Job of Plan.Attempt.
	ActionSave Action = "save"
	// ActionRecordDue only writes into the status that Plan.Attempt is due.
	ActionRecordDue Action = "recordDue"
	// ActionExpire deletes the EtcdBackup, whose TTL is over. What it has stored stays in the store.
	ActionExpire Action = "expire"
	// ActionRemoveFinalizer takes AncestorFinalizer off an object that is being deleted.
	ActionRemoveFinalizer Action = "removeFinalizer"
)

// AncestorFinalizer is what the original etcd-operator put on periodic backups, to
// hear of their end. Nothing needs it here, and an object that still carries it must
// not stay for ever.
const AncestorFinalizer = "backup-operator-periodic"

const (
	// progressPeriod is how often a running transfer is looked at.
	progressPeriod = 10 * time.Second
	// startPeriod is how often a Job whose pod has not started is looked at.
	startPeriod = 5 * time.Second
	// recordedPeriod is how soon the next step follows what was only written into the status.
	recordedPeriod = time.Second
	// sourcePeriod is how often a cluster that cannot be backed up is looked at again.
	sourcePeriod = 15 * time.Second
	// idlePeriod bounds every wait, so that a clock that was set is noticed.
	idlePeriod = 10 * time.Minute
)

// Plan is what the controller does about an EtcdBackup, and what the status reports.
type Plan struct {
	Action Action
	// Attempt that ActionSave begins, that ActionRecordDue announces, or that is waited for.
	Attempt Attempt
	// Record is the outcome of Attempt. The plan only writes it, and nothing else happens before.
	Record *Outcome
	// Delete lists Jobs that have served their purpose.
	Delete []string
	// Wait is what is waited for; nil if nothing is, or only for the time.
	Wait *Wait
	// Kept is why the EtcdBackup stays although its TTL is over; nil if it is not over.
	Kept *Kept
	// Next is the next scheduled time of a periodic backup; zero if there is none.
	Next time.Time
	// RequeueAfter is when to look again if nothing happens before; 0: not at all.
	RequeueAfter time.Duration
}

// Postponed returns the plan with its Job put off, because too many run.
func (p Plan) Postponed(why Wait) Plan {
	p.Action = ActionNone
	p.Wait = &why
	return p
}

// Decide says what is done next. The first rule that speaks wins.
func Decide(o Observed) Plan {
	if o.Backup.DeletionTimestamp != nil {
		if slices.Contains(o.Backup.Finalizers, AncestorFinalizer) {
			return Plan{Action: ActionRemoveFinalizer}
		}
		return Plan{}
	}
	schedule, err := ScheduleOf(o.Backup.Spec.BackupPolicy, o.Backup.CreationTimestamp.Time)
	if err != nil {
		// Validation rejects such a schedule. One that was stored before stops only itself.
		return Plan{Wait: &Wait{Reason: ReasonInvalidSchedule, Message: err.Error()}}
	}
	scheduled, next := o.dueTime(schedule)
	var plan Plan
	for _, rule := range []func(*Observed, time.Time) (Plan, bool){
		recordJob, recordLost, awaitJob, begin, retry, expire,
	} {
		var decided bool
		if plan, decided = rule(&o, scheduled); decided {
			break
		}
	}
	if !o.isSuspended() {
		plan.Next = next
	}
	if plan.Record == nil {
		plan.Delete = o.served()
	}
	if plan.RequeueAfter == 0 && plan.Record == nil && plan.Action == ActionNone && !plan.Next.IsZero() {
		plan.RequeueAfter = plan.Next.Sub(o.Now)
	}
	if plan.RequeueAfter > idlePeriod {
		plan.RequeueAfter = idlePeriod
	}
	return plan
}

// dueTime returns the scheduled time that is due, zero if none is, and the one after it.
func (o *Observed) dueTime(schedule Schedule) (scheduled, next time.Time) {
	created := o.Backup.CreationTimestamp.Time
	handled := o.current().ScheduledTime
	if schedule != nil {
		scheduled, next = due(schedule, created, handled, o.Now)
		if at := o.Recovered; isBehind(o.Backup, at, o.Now) && at.After(scheduled) {
			scheduled = at
		}
	} else if handled.IsZero() {
		scheduled = created
	}
	if scheduled.IsZero() && o.hasFailed() && o.Backup.Generation != o.Backup.Status.ObservedGeneration {
		// The spec was changed after a failure: what was wrong may be right now.
		// Scheduled times only go forward, even if the clock was set back.
		scheduled = o.Now.Truncate(time.Second)
		if !scheduled.After(handled) {
			scheduled = handled.Add(time.Second)
		}
	}
	return scheduled.Truncate(time.Second), next
}

// isBehind is true if a periodic backup was not due since the data of its cluster went on in new members: it holds nothing of
// what the cluster has since. A clock that was set back is no reason for a backup.
func isBehind(b *v1beta2.EtcdBackup, recovered, now time.Time) bool {
	return recovered.After(timeOf(b.Status.LastScheduleTime)) && recovered.After(b.CreationTimestamp.Time) && !recovered.After(now)
}

// RecoveredAt is when the data of a cluster last went on in new members, by a recovery or a restore in place; zero if it
// never has.
func RecoveredAt(c *v1beta2.EtcdCluster) time.Time {
	if r := c.Status.Recovery; r != nil && r.Phase == v1beta2.RecoveryPhaseSucceeded {
		return timeOf(r.CompletionTime)
	}
	return time.Time{}
}

// hasFailed is true if the current attempt ended without a backup.
func (o *Observed) hasFailed() bool {
	return o.current().Number > 0 && !o.isRunning() && !o.Backup.Status.Succeeded
}

// recordJob writes the outcome of a Job into the status.
func recordJob(o *Observed, _ time.Time) (Plan, bool) {
	j := o.pending()
	switch {
	case j == nil:
		return Plan{}, false
	case j.Outcome != nil:
		return Plan{Attempt: j.Attempt, Record: j.Outcome}, true
	case j.LostNode != nil && !j.SharesKey:
		return Plan{Attempt: j.Attempt, Record: &Outcome{
			Reason: ReasonNodeLost, Message: j.LostNode.Message, Start: j.Created, Completion: o.Now,
		}}, true
	case j.IsLate(o.Now) && j.LostNode == nil:
		return Plan{Attempt: j.Attempt, Record: &Outcome{
			Reason: ReasonNotStarted, Message: j.LateMessage(), Start: j.Created, Completion: o.Now,
		}}, true
	case o.endangered(j) != "":
		// What is recorded is deleted next, and another attempt keeps what is held.
		return Plan{Attempt: j.Attempt, Record: &Outcome{
			Reason: ReasonRestoreBegan, Start: j.Created, Completion: o.Now, Message: fmt.Sprintf(
				"Job %s was ended: it began before a hold or a restore that keeps %s, and its retention could delete that; the next attempt keeps it", j.Name, o.endangered(j)),
		}}, true
	default:
		return Plan{}, false
	}
}

// recordLost records that a Job no longer exists, and its outcome with it.
func recordLost(o *Observed, _ time.Time) (Plan, bool) {
	if !o.isRunning() || o.job(o.current()) != nil {
		return Plan{}, false
	}
	return Plan{Attempt: o.current(), Record: &Outcome{
		Reason: ReasonJobLost, Message: "the Job was deleted before its result was read",
		Start: timeOf(o.Backup.Status.StartTime), Completion: o.Now,
	}}, true
}

// awaitJob waits for the Job that runs, also on a lost node if attempts share a name in the store. A manifest of one
// attempt beside the snapshot of another is no backup.
func awaitJob(o *Observed, _ time.Time) (Plan, bool) {
	j := o.pending()
	if j == nil {
		return Plan{}, false
	}
	return o.awaitEnd(j, j.Attempt), true
}

// awaitEnd waits for the end of a Job before the next step of an attempt.
func (o *Observed) awaitEnd(j *Job, a Attempt) Plan {
	plan := Plan{Attempt: a, RequeueAfter: progressPeriod}
	switch {
	case j.LostNode != nil:
		plan.Wait = &Wait{Reason: ReasonNodeLost, Message: j.LostNode.Message +
			"; the pod may still write under the name that the next attempt stores at: make sure that the node is off, then delete the pod with --force"}
	case !j.Started:
		plan.RequeueAfter = startPeriod
		plan.Wait = j.Unstarted()
	default:
		plan.Wait = o.unending(j)
	}
	return plan
}

// AwaitWriter is the wait for the end of a pod that may write under the name that the next attempt stores at, and that no Job
// of the observation tells of. It may be a copy of the pod of an attempt, which ends when a user deletes it.
func AwaitWriter(namespace, pod, node string) Wait {
	on := ""
	if node != "" {
		on = " on node " + node
	}
	return Wait{Reason: ReasonJobNotEnding, Message: fmt.Sprintf("pod %s%s may write under the name that the next attempt stores at, so that attempt begins after the end of the pod. "+
		"If the pod does not end, delete it: kubectl delete pod %s -n %s. If its node does not respond, make sure first that the node is off, then add --force", pod, on, pod, namespace)}
}

// unending returns what a user can do about a Job that runs for longer than its transfer takes, while its agent does not
// respond; nil if there is no such reason. Its pod may have no end: on a lost node whose taint it tolerates, or in a call of
// a disk that does not return. Only a user can tell that from a slow transfer that the controller cannot reach. The deletion
// of the Job alone would leave such a pod, and its volume attached to the node. The end of the pod ends the Job, too.
func (o *Observed) unending(j *Job) *Wait {
	pod := j.Running
	if !j.IsUnresponsive() || o.Now.Sub(pod.Since) < o.longest() {
		return nil
	}
	message := fmt.Sprintf("Job %s does not end: its pod %s on node %s has run since %s, and its agent does not respond. "+
		"If the log of the pod shows nothing new, restart that node, or make sure that it is off and delete the pod: kubectl delete pod %s -n %s --force",
		j.Name, pod.Name, pod.Node, pod.Since.UTC().Format(time.RFC3339), pod.Name, o.Backup.Namespace)
	if j.SharesKey {
		message += ". While the pod runs, it may write under the name that the next attempt stores at"
	}
	return &Wait{Reason: ReasonJobNotEnding, Message: message + ". " + o.following(j)}
}

// following says whether another attempt follows the end of a Job that stores nothing.
func (o *Observed) following(j *Job) string {
	switch {
	case o.isSuspended():
		return "No attempt follows while spec.backupPolicy.suspend is true"
	case j.Attempt.Number >= maxAttempts:
		return fmt.Sprintf("This is the last of %d attempts", maxAttempts)
	default:
		return "Another attempt follows"
	}
}

// longest is how long a container of an attempt may run before that is a reason to wait. It may store the snapshot and read
// it back.
func (o *Observed) longest() time.Duration {
	size := o.Backup.Status.SnapshotSize
	if p := o.Backup.Status.Progress; p != nil {
		size = max(size, p.TotalBytes)
	}
	return max(Waits[ReasonJobNotEnding].Patience(2*size), time.Duration(o.policy().TimeoutInSecond)*time.Second)
}

// begin makes the first attempt for a scheduled time.
//
// Scheduled times tell which Jobs the status has recorded. So a status from a clock that was
// ahead goes back to the present before an attempt begins. No Job of a later time is left
// then, and the Job of this attempt does not count as recorded.
func begin(o *Observed, scheduled time.Time) (Plan, bool) {
	first := Attempt{ScheduledTime: scheduled, Number: 1}
	switch {
	case scheduled.IsZero():
		return Plan{}, false
	case o.isSuspended() || !o.isAhead():
	case len(o.Jobs) > 0:
		return Plan{Attempt: o.current(), RequeueAfter: startPeriod}, true
	case o.isRecorded(first):
		return Plan{Action: ActionRecordDue, Attempt: first, RequeueAfter: recordedPeriod}, true
	}
	return o.start(first), true
}

// retry makes the next attempt for the same scheduled time, or waits until it is time for it.
func retry(o *Observed, _ time.Time) (Plan, bool) {
	now := o.current()
	switch {
	case now.ScheduledTime.IsZero() || now.Number >= maxAttempts || (now.Number > 0 && !o.hasFailed()):
		return Plan{}, false
	case now.Number > 0:
		at := timeOf(o.Backup.Status.CompletionTime).Add(backOff(now.Number))
		// A clock that was set back does not make a retry wait longer than it would.
		if wait := min(at.Sub(o.Now), backOff(now.Number)); wait > 0 {
			return Plan{Attempt: now, RequeueAfter: wait}, true
		}
	}
	return o.start(Attempt{ScheduledTime: now.ScheduledTime, Number: now.Number + 1}), true
}

// start makes an attempt, unless nothing can be backed up, or a pod may still write under the name that the attempt stores at.
func (o *Observed) start(a Attempt) Plan {
	switch {
	case o.isSuspended():
		return Plan{Attempt: o.current()}
	case o.Source != nil:
		return Plan{Attempt: a, Wait: o.Source, RequeueAfter: sourcePeriod}
	}
	if j := o.writer(); j != nil {
		return o.awaitEnd(j, a)
	}
	return Plan{Action: ActionSave, Attempt: a}
}

// writer returns a Job with a recorded outcome whose pod may still write under the name that the next attempt stores at; nil
// if there is none. The controller deletes a Job before its pod has ended if it endangers what is held, and a user may at any time.
func (o *Observed) writer() *Job {
	if i := slices.IndexFunc(o.Jobs, func(j Job) bool { return j.SharesKey && j.Outcome == nil }); i >= 0 {
		return &o.Jobs[i]
	}
	return nil
}

// served returns the Jobs whose outcome is in the status. The newest Job that failed
// stays, so that a user can read its log, unless a clock that was ahead has dated it. A lost node shows no log, and a
// Job without a pod that ends may not stay beside the next one.
func (o *Observed) served() []string {
	var names []string
	for i := range o.Jobs {
		j := &o.Jobs[i]
		if j.Deleting || !o.isRecorded(j.Attempt) {
			continue
		}
		if newest := j.Attempt.isSame(o.current()); !newest || o.isAhead() || j.LostNode != nil || j.Outcome == nil || j.Outcome.Succeeded {
			names = append(names, j.Name)
		}
	}
	return names
}
