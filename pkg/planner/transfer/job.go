// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"cmp"
	"fmt"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// StartTimeout is how long Kubernetes may take to start a pod.
const StartTimeout = 10 * time.Minute

// Reasons why a Job does not come to run.
const (
	// ReasonNotStarted is a Job whose pod Kubernetes could not start.
	ReasonNotStarted = "PodNotStarted"
	// ReasonRefused is a pod, or another object, that Kubernetes does not let be made: it
	// goes on by itself once it does.
	ReasonRefused = v1beta2.ReasonPodRefused
	// ReasonJobLost is a Job that is gone, or ended without saying how.
	ReasonJobLost = "JobLost"
)

// Wait is what is waited for.
type Wait struct {
	// Reason in one CamelCase word.
	Reason string
	// Message for a reader.
	Message string
}

// Job is what is known of one Job while it runs.
type Job struct {
	Name string
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
}

// Late is true if Kubernetes has had its time to start the pod. A pod that was refused
// for long has all of it from when it was made.
func (j *Job) Late(now time.Time) bool {
	since := j.Created
	if j.PodMade.After(since) {
		since = j.PodMade
	}
	return !j.Started && now.Sub(since) >= StartTimeout
}

// Unstarted says why it has not been started; nil if that is not known.
func (j *Job) Unstarted() *Wait {
	switch {
	case j.Refused:
		return &Wait{Reason: ReasonRefused, Message: cmp.Or(j.Waiting, fmt.Sprintf("Kubernetes has made no pod for Job %s yet", j.Name))}
	case !j.Started && j.Waiting != "":
		return &Wait{Reason: ReasonNotStarted, Message: j.Waiting}
	default:
		return nil
	}
}

// Noticeable is true if a transfer has come a tenth of its way further, so that a large
// one costs few writes of the status.
func Noticeable(before, now *v1beta2.TransferProgress) bool {
	switch {
	case now == nil:
		return false
	case before == nil:
		return true
	default:
		return now.Bytes > before.Bytes && now.Bytes-before.Bytes >= max(now.TotalBytes, now.Bytes)/10
	}
}
