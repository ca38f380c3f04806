// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// StartTimeout is how long Kubernetes may take to start a pod.
const StartTimeout = 10 * time.Minute

// Reason of an object that is finished.
const (
	// ReasonComplete: nothing is under way, and nothing follows by itself. The condition Succeeded says how it ended.
	ReasonComplete = "Complete"
)

// Reasons why a Job does not come to run.
const (
	// ReasonNotStarted: Kubernetes does not start the pod of a Job, or the next container in it, and the message says why. After ten minutes the attempt has failed.
	ReasonNotStarted = "PodNotStarted"
	// ReasonRejected: Kubernetes rejects the Job, its pod or an object that it needs: a quota is used up, or a policy forbids it. Ends by itself after Kubernetes accepts it.
	ReasonRejected = v1beta2.ReasonPodRejected
	// ReasonJobLost is a Job that no longer exists, or ended without an outcome.
	ReasonJobLost = "JobLost"
	// ReasonNodeLost: the node of the pod of a Job does not report the end of the pod. The next attempt follows by itself.
	ReasonNodeLost = "NodeLost"
)

// LostNode is a node that does not report the end of the pod of a Job. The pod may still run there.
type LostNode struct {
	// Since is when the kubelet has had its time to report it.
	Since time.Time
	// Message names the node and the pod.
	Message string
}

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
	// Started is true while its containers run. It is false again while Kubernetes does not start the next of them.
	Started bool
	// Waiting says why the container that is next has not been started yet, if Kubernetes says so.
	Waiting string
	// Rejected is true while Kubernetes makes no pod for it, for the reason in Waiting if
	// it has told one.
	Rejected bool
	// PodMade is when its pod was made; zero while it has none.
	PodMade time.Time
	// StepEnded is when the container ended after which Kubernetes does not start the next one; zero if the first one waits.
	StepEnded time.Time
	// Deleting is true of a Job that is going away.
	Deleting bool
	// LostNode is where its pods were; nil while one of them may still report its end.
	LostNode *LostNode
	// Running is its pod that has started and that Kubernetes does not delete; nil if there is none.
	Running *RunningPod
	// Progress of a running transfer, if it is known.
	Progress *v1beta2.TransferProgress
}

// RunningPod is a pod whose containers run.
type RunningPod struct {
	Name, Node string
	// Since is when its newest container started.
	Since time.Time
}

// IsUnresponsive is true if a container runs whose agent does not report its progress. An agent that responds ends by itself
// once nothing moves. One that does not respond is behind a network policy, between two containers, or without an end: on a
// lost node, or in a call of a disk that does not return.
func (j *Job) IsUnresponsive() bool { return j.Running != nil && j.Progress == nil }

// IsLate is true if Kubernetes has had its time to start the pod, or the next container in it.
func (j *Job) IsLate(now time.Time) bool {
	return !j.Started && !now.Before(j.LateAt())
}

// LateAt is when Kubernetes has had that time. For a pod that Kubernetes rejected at first, it counts from the creation of
// the pod; for the next container of a pod, from the end of the one before.
func (j *Job) LateAt() time.Time {
	since := slices.MaxFunc([]time.Time{j.Created, j.PodMade, j.StepEnded}, time.Time.Compare)
	return since.Add(StartTimeout)
}

// LateMessage tells what a Job that is late waits for.
func (j *Job) LateMessage() string {
	what := "pod"
	if !j.StepEnded.IsZero() {
		what = "next container"
	}
	return fmt.Sprintf("the %s of Job %s was not started within %s%s", what, j.Name, StartTimeout, WithCause(j.why()))
}

// nextImage says what ends the wait for a container after the first one.
const nextImage = "if its image cannot be pulled, correct the version or the repository of the EtcdCluster: the next attempt uses what is declared by then"

// why is the cause of the wait with what to do about it; empty if the cause is not known.
func (j *Job) why() string {
	if j.Waiting == "" || j.StepEnded.IsZero() {
		return j.Waiting
	}
	return j.Waiting + "; " + nextImage
}

// WithCause returns the cause behind a colon; empty for an empty cause.
func WithCause(cause string) string {
	if cause == "" {
		return ""
	}
	return ": " + cause
}

// Unstarted says why it has not been started; nil if that is not known.
func (j *Job) Unstarted() *Wait {
	switch {
	case j.Rejected:
		return &Wait{Reason: ReasonRejected, Message: cmp.Or(j.Waiting, fmt.Sprintf("Kubernetes has created no pod for Job %s yet", j.Name))}
	case !j.Started && j.Waiting != "":
		return &Wait{Reason: ReasonNotStarted, Message: j.why()}
	default:
		return nil
	}
}

// IsNoticeable is true if a transfer has come a tenth of its way further, so that a large
// one costs few writes of the status.
func IsNoticeable(before, now *v1beta2.TransferProgress) bool {
	switch {
	case now == nil:
		return false
	case before == nil:
		return true
	default:
		return now.Bytes > before.Bytes && now.Bytes-before.Bytes >= max(now.TotalBytes, now.Bytes)/10
	}
}
