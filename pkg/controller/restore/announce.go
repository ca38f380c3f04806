// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	planner "github.com/etcd-operator/etcd-operator/pkg/planner/restore"
)

// Reasons of the events on an EtcdRestore. They are part of the API: alerts match them.
const (
	EventVerifying      = "RestoreVerifying"
	EventClusterCreated = "RestoreClusterCreated"
	EventSafetyCopy     = "RestoreSafetyCopy"
	EventRequested      = "RestoreRequested"
	EventCancelled      = "RestoreCancelled"
	EventSucceeded      = "RestoreSucceeded"
	EventFailed         = "RestoreFailed"
)

// Series are bounded: nothing has a series for each restore.
var (
	ended = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      "etcd_operator",
		Name:           "restores_total",
		Help:           "Restores that ended, by result (Succeeded or Failed).",
		StabilityLevel: metrics.ALPHA,
	}, []string{"result"})

	duration = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem:      "etcd_operator",
		Name:           "restore_duration_seconds",
		Help:           "How long good restores took, from the first look at the backup to the first write that the restored cluster has committed.",
		Buckets:        metrics.ExponentialBuckets(1, 2, 14),
		StabilityLevel: metrics.ALPHA,
	})
)

// RegisterMetrics adds the metrics of this package to the registry that the process
// serves. It must be called once.
func RegisterMetrics() {
	legacyregistry.MustRegister(ended, duration)
}

// announce says how a restore has ended, once it is written down.
func (r *Reconciler) announce(s *seen, plan planner.Plan) {
	record := plan.Record
	switch {
	case record == nil:
	case record.Succeeded:
		ended.WithLabelValues("Succeeded").Inc()
		if since := s.Restore.Status.StartTime; since != nil {
			duration.Observe(s.Now.Sub(since.Time).Seconds())
		}
		r.normal(s, EventSucceeded, "EtcdCluster %s serves the data of revision %d", s.Restore.Spec.EtcdCluster.Name, s.Restore.Status.Revision)
	default:
		ended.WithLabelValues("Failed").Inc()
		r.Recorder.Eventf(s.Restore, corev1.EventTypeWarning, EventFailed, "%s: %s", record.Reason, record.Message)
	}
}
