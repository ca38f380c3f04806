// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"regexp"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// The event of a Job whose pod is rejected, and when it is looked for.
const (
	// EventRejected: Kubernetes rejected the pod of a Job. The message is that of Kubernetes.
	EventRejected = "FailedCreate"
	// podGrace is how long a Job may take to create its pod before its events are read.
	podGrace = 2 * time.Second
)

// mayBeRejected is true of a Job that should have a pod by now.
func mayBeRejected(job *batchv1.Job, pods []*corev1.Pod, now time.Time) bool {
	return len(pods) == 0 && Ended(job) == nil && job.DeletionTimestamp == nil && now.Sub(job.CreationTimestamp.Time) >= podGrace
}

// rejectionIn returns why Kubernetes creates no pod for a Job, according to its events; ""
// if they do not tell.
func rejectionIn(job *batchv1.Job, events []corev1.Event) string {
	var newest *corev1.Event
	for i := range events {
		e := &events[i]
		if e.Reason == EventRejected && e.InvolvedObject.UID == job.UID && (newest == nil || lastSeen(newest).Before(lastSeen(e))) {
			newest = e
		}
	}
	if newest == nil {
		return ""
	}
	// Each attempt has a pod name of its own. Without it the message stays the same.
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
