// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
)

// Series are bounded: no restore has a series of its own.
var (
	restoresEnded = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      "etcd_operator",
		Name:           "restores_total",
		Help:           "Restores that ended, by result (Succeeded or Failed).",
		StabilityLevel: metrics.ALPHA,
	}, []string{"result"})

	restoreDuration = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem:      "etcd_operator",
		Name:           "restore_duration_seconds",
		Help:           "Duration of restores that succeeded, from the first read of the backup to the first write that the restored cluster committed.",
		Buckets:        metrics.ExponentialBuckets(1, 2, 14),
		StabilityLevel: metrics.ALPHA,
	})
)

// ObserveRestore counts a restore that ended at now. Start may be nil.
func ObserveRestore(succeeded bool, start *metav1.Time, now time.Time) {
	if !succeeded {
		restoresEnded.WithLabelValues("Failed").Inc()
		return
	}
	restoresEnded.WithLabelValues("Succeeded").Inc()
	if start != nil {
		restoreDuration.Observe(now.Sub(start.Time).Seconds())
	}
}
