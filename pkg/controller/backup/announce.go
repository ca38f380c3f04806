// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/controller/metrics"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// started says that an attempt was begun.
func (r *Reconciler) started(s *seen, j *batchv1.Job) {
	r.Recorder.Eventf(s.Backup, corev1.EventTypeNormal, EventStarted, "Attempt %s by Job %s",
		j.Annotations[resources.AnnotationAttempt], j.Name)
}

// announce records the event of an attempt that has ended, after the status was written.
func (r *Reconciler) announce(s *seen, plan planner.Plan) {
	o := plan.Record
	if o == nil {
		return
	}
	metrics.ObserveBackupAttempt(s.Backup.Spec.StorageType, o)
	if !o.Succeeded {
		r.Recorder.Eventf(s.Backup, corev1.EventTypeWarning, EventFailed, "Attempt %d: %s: %s", plan.Attempt.Number, o.Reason, o.Message)
		return
	}
	r.Recorder.Eventf(s.Backup, corev1.EventTypeNormal, EventSucceeded, "Revision %d stored at %s: a snapshot of %d bytes, stored as %d bytes, served by %s",
		o.Revision, o.URI, o.SnapshotSize, o.StoredSize, o.Member)
	if o.Warning != "" {
		r.Recorder.Eventf(s.Backup, corev1.EventTypeWarning, EventPruneFailed, "%s", o.Warning)
	}
}
