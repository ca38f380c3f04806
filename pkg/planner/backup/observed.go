// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Observed is everything that a decision about one EtcdBackup depends on.
type Observed struct {
	Now    time.Time
	Backup *v1beta2.EtcdBackup
	// Source is why nothing can be backed up at the moment; nil if it can.
	Source *Wait
	// Jobs of the backup. If the status says that one runs and the cache does not show
	// it, they were read live.
	Jobs []Job
}

// Wait is what is waited for.
type Wait struct {
	// Reason in one CamelCase word.
	Reason string
	// Message for a reader.
	Message string
}

// Attempt names one attempt at the backup for one slot.
type Attempt struct {
	// Slot is the time for which the backup was due, in whole seconds.
	Slot time.Time
	// Number of the attempt, from 1.
	Number int32
}

func (a Attempt) same(b Attempt) bool { return a.Number == b.Number && a.Slot.Equal(b.Slot) }

// Job is one Job of the backup.
type Job struct {
	Name    string
	Attempt Attempt
	// Created is when the Job was made.
	Created time.Time
	// Started is true once its container has been started.
	Started bool
	// Waiting says why the container has not been started yet, if Kubernetes says so.
	Waiting string
	// Refused is true while Kubernetes makes no pod for it, for the reason in Waiting if
	// it has told one.
	Refused bool
	// PodMade is when its pod was made; zero while it has none.
	PodMade time.Time
	// Deleting is true of a Job that is going away.
	Deleting bool
	// Progress of a running transfer, if it is known.
	Progress *v1beta2.TransferProgress
	// Outcome is nil while the Job is not finished.
	Outcome *Outcome
}

// late is true if Kubernetes has had its time to start the pod. A pod that was refused
// for long has all of it from when it was made.
func (j *Job) late(now time.Time) bool {
	since := j.Created
	if j.PodMade.After(since) {
		since = j.PodMade
	}
	return !j.Started && now.Sub(since) >= startTimeout
}

// unstarted says why it has not been started; nil if that is not known.
func (j *Job) unstarted() *Wait {
	switch {
	case j.Refused:
		return &Wait{ReasonRefused, cmp.Or(j.Waiting, fmt.Sprintf("Kubernetes has made no pod for Job %s yet", j.Name))}
	case !j.Started && j.Waiting != "":
		return &Wait{ReasonNotStarted, j.Waiting}
	default:
		return nil
	}
}

// Outcome is what came of a Job.
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

	// Warning is what went wrong after the backup was stored: backups that expired may
	// still be there.
	Warning string
}

// Reasons of failures that the controller finds itself. Others come from the agent.
const (
	// ReasonNotStarted is a Job whose pod Kubernetes could not start.
	ReasonNotStarted = "PodNotStarted"
	// ReasonRefused is a Job, or its pod, that Kubernetes does not let be made.
	ReasonRefused = v1beta2.ReasonPodRefused
	// ReasonJobLost is a Job that is gone, or ended without saying how.
	ReasonJobLost = "JobLost"
)

func (o *Observed) policy() *v1beta2.BackupPolicy {
	if o.Backup.Spec.BackupPolicy == nil {
		return &v1beta2.BackupPolicy{}
	}
	return o.Backup.Spec.BackupPolicy
}

// suspended is true of a periodic backup that shall rest.
func (o *Observed) suspended() bool { return o.periodic() && o.policy().Suspend }

func (o *Observed) periodic() bool {
	return o.policy().Schedule != "" || o.policy().BackupIntervalInSecond > 0
}

// current is the attempt that the status is about.
func (o *Observed) current() Attempt {
	s := &o.Backup.Status
	return Attempt{Slot: timeOf(s.LastScheduleTime), Number: s.Attempts}
}

// running is true if the status says that an attempt is under way.
func (o *Observed) running() bool {
	s := &o.Backup.Status
	return s.Attempts > 0 && s.StartTime != nil && s.CompletionTime == nil
}

// recorded is true if the status holds what came of an attempt.
func (o *Observed) recorded(a Attempt) bool {
	now := o.current()
	switch {
	case !a.Slot.Equal(now.Slot):
		return a.Slot.Before(now.Slot)
	case a.Number != now.Number:
		return a.Number < now.Number
	default:
		return !o.running()
	}
}

// job returns the Job of an attempt, nil if there is none.
func (o *Observed) job(a Attempt) *Job {
	for i := range o.Jobs {
		if j := &o.Jobs[i]; j.Attempt.same(a) {
			return j
		}
	}
	return nil
}

// pending returns the oldest Job of which nothing is recorded, nil if there is
// none.
func (o *Observed) pending() *Job {
	var oldest *Job
	for i := range o.Jobs {
		j := &o.Jobs[i]
		if o.recorded(j.Attempt) {
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

func metaTime(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	m := metav1.NewTime(t.Truncate(time.Second))
	return &m
}
