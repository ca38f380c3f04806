// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Observed is everything that a decision about one EtcdBackup depends on.
type Observed struct {
	Now    time.Time
	Backup *v1beta2.EtcdBackup
	// Source is why nothing can be backed up at the moment; nil if it can.
	Source *Wait
	// Recovered is RecoveredAt of the cluster.
	Recovered time.Time
	// Held are the URIs of the backups that no Job may delete because a user holds them, or a restore reads them.
	Held []string
	// Needed is why the EtcdBackup stays after its TTL; nil if nothing needs it, or without a TTL.
	Needed *Kept
	// Jobs of the backup. If the status says that one runs and the cache does not show
	// it, they were read live. A Job that no longer exists is one of them while its pod may write under a name that others share.
	Jobs []Job
}

// Wait is what is waited for.
type Wait = job.Wait

// Kept is why an EtcdBackup stays after its TTL.
type Kept struct{ Reason, Message string }

// Attempt names one attempt at the backup for one scheduled time.
type Attempt struct {
	// ScheduledTime is when the backup was due, in whole seconds.
	ScheduledTime time.Time
	// Number of the attempt, from 1.
	Number int32
}

func (a Attempt) isSame(b Attempt) bool {
	return a.Number == b.Number && a.ScheduledTime.Equal(b.ScheduledTime)
}

// Job is one Job of the backup.
type Job struct {
	job.Job
	Attempt Attempt
	// Pruner is what the Job deletes; nil if it deletes no backup.
	Pruner *job.Pruner
	// SharesKey is true if another attempt writes under the same name in the store.
	SharesKey bool
	// Outcome is nil while the Job is not finished.
	Outcome *Outcome
}

// Outcome is the result of a Job.
type Outcome struct {
	Succeeded bool
	// Reason in one CamelCase word why it failed.
	Reason string
	// Message for a reader. It holds no secret.
	Message string

	Start, Completion time.Time

	// What was stored.
	URI          string
	EtcdVersion  string
	Revision     int64
	SnapshotSize int64
	StoredSize   int64
	SHA256       string
	Member       string
	Verified     bool
	// VerifiedBy says how.
	VerifiedBy v1beta2.Verification
	// Unconfirmed is true if no quorum confirmed that the member had every write.
	Unconfirmed bool
	// DataDiffers is true if etcd reported that the data of its members differed.
	DataDiffers bool
	// RaftIndex up to which it has the log of etcd.
	RaftIndex int64

	// Warning is what went wrong after the backup was stored: backups that expired may
	// still be there.
	Warning string
	// Unproved backups of a cluster of the same name lie at UnprovedAt and are left alone,
	// because nothing proves that this EtcdBackup has made them.
	Unproved   int
	UnprovedAt string
	// Spared is the URI of the last backup of the cluster before, which is kept beyond
	// the retention's count; empty if there is none.
	Spared string
}

func (o *Observed) policy() *v1beta2.BackupPolicy {
	if o.Backup.Spec.BackupPolicy == nil {
		return &v1beta2.BackupPolicy{}
	}
	return o.Backup.Spec.BackupPolicy
}

// isSuspended is true for a periodic backup whose policy suspends it.
func (o *Observed) isSuspended() bool { return o.isPeriodic() && o.policy().Suspend }

func (o *Observed) isPeriodic() bool { return o.Backup.Spec.IsPeriodic() }

// current is the attempt that the status is about.
func (o *Observed) current() Attempt {
	s := &o.Backup.Status
	return Attempt{ScheduledTime: timeOf(s.LastScheduleTime), Number: s.Attempts}
}

// isAhead is true if the attempt that the status is about was recorded while a clock was ahead.
func (o *Observed) isAhead() bool { return resources.IsFuture(o.current().ScheduledTime, o.Now) }

// isRunning is true if the status says that an attempt is under way.
func (o *Observed) isRunning() bool {
	s := &o.Backup.Status
	return s.Attempts > 0 && s.StartTime != nil && s.CompletionTime == nil
}

// isRecorded is true if the status holds the outcome of an attempt.
func (o *Observed) isRecorded(a Attempt) bool {
	now := o.current()
	switch {
	case !a.ScheduledTime.Equal(now.ScheduledTime):
		return a.ScheduledTime.Before(now.ScheduledTime)
	case a.Number != now.Number:
		return a.Number < now.Number
	default:
		return !o.isRunning()
	}
}

// job returns the Job of an attempt, nil if there is none.
func (o *Observed) job(a Attempt) *Job {
	for i := range o.Jobs {
		if j := &o.Jobs[i]; j.Attempt.isSame(a) {
			return j
		}
	}
	return nil
}

// pending returns the oldest Job without a recorded outcome, nil if there is none.
func (o *Observed) pending() *Job {
	var oldest *Job
	for i := range o.Jobs {
		j := &o.Jobs[i]
		if o.isRecorded(j.Attempt) {
			continue
		}
		if oldest == nil || j.Created.Before(oldest.Created) {
			oldest = j
		}
	}
	return oldest
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
