// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/controller/metrics"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/restore"
)

// Reasons of the events on an EtcdRestore. They are part of the API: alerts match them.
const (
	EventVerifying        = "RestoreVerifying"
	EventClusterCreated   = "RestoreClusterCreated"
	EventPreRestoreBackup = "PreRestoreBackup"
	EventRequested        = "RestoreRequested"
	EventCancelled        = "RestoreCancelled"
	EventSucceeded        = "RestoreSucceeded"
	// EventFailed: the restore has ended without success. The message begins with the reason of the condition Succeeded.
	EventFailed = "RestoreFailed"
	// EventClusterKept: the restore was deleted before its new EtcdCluster served the data, and the API rejects to delete that EtcdCluster, so it stays.
	EventClusterKept = "RestoreClusterKept"
)

// announce says how a restore has ended, once it is written down.
func (r *Reconciler) announce(s *seen, plan planner.Plan) {
	record := plan.Record
	switch {
	case record == nil:
	case record.Succeeded:
		metrics.ObserveRestore(true, s.Restore.Status.StartTime, s.Now)
		r.normal(s, EventSucceeded, "EtcdCluster %s serves the data of revision %d", s.Restore.Spec.EtcdCluster.Name, s.Restore.Status.Revision)
	default:
		metrics.ObserveRestore(false, s.Restore.Status.StartTime, s.Now)
		r.Recorder.Eventf(s.Restore, corev1.EventTypeWarning, EventFailed, "%s: %s", record.Reason, record.Message)
	}
}
