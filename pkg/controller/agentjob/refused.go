// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package agentjob

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ErrRefused means that Kubernetes does not let an object be made: a quota is used up, or
// a policy forbids it. Trying again helps once somebody has changed that.
var ErrRefused = errors.New("refused by Kubernetes")

// Refused marks an error from making an object if it is such a refusal.
func Refused(err error) error {
	terminating := apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
	if !terminating && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

const (
	// EventRefused is the reason of the events that tell of a pod that was refused.
	EventRefused = "FailedCreate"
	// podGrace is how long a Job may take to make its pod before somebody asks why.
	podGrace = 2 * time.Second
)

// MayBeRefused is true of a Job that should have a pod by now.
func MayBeRefused(job *batchv1.Job, pods []*corev1.Pod, now time.Time) bool {
	return len(pods) == 0 && Ended(job) == nil && job.DeletionTimestamp == nil && now.Sub(job.CreationTimestamp.Time) >= podGrace
}

// RefusedFor says why Kubernetes makes no pod for a Job, as its events tell; "" if they
// tell nothing.
func RefusedFor(job *batchv1.Job, events []corev1.Event) string {
	var newest *corev1.Event
	for i := range events {
		e := &events[i]
		if e.Reason == EventRefused && e.InvolvedObject.UID == job.UID && (newest == nil || lastSeen(newest).Before(lastSeen(e))) {
			newest = e
		}
	}
	if newest == nil {
		return ""
	}
	// Each pod that is tried has a name of its own. What is said of all shall stay the same.
	tried := regexp.MustCompile(regexp.QuoteMeta(job.Name) + `-[a-z0-9]{5}`)
	return Shorten(tried.ReplaceAllLiteralString(newest.Message, job.Name))
}

func lastSeen(e *corev1.Event) time.Time {
	seen := e.CreationTimestamp.Time
	if e.LastTimestamp.After(seen) {
		seen = e.LastTimestamp.Time
	}
	if s := e.Series; s != nil && s.LastObservedTime.After(seen) {
		seen = s.LastObservedTime.Time
	}
	return seen
}
