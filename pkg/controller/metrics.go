// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync/atomic"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	reconcileDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem:      "etcd_operator",
		Name:           "reconcile_duration_seconds",
		Help:           "How long one reconcile of an object took, by kind and outcome.",
		Buckets:        metrics.ExponentialBuckets(0.001, 2, 14),
		StabilityLevel: metrics.ALPHA,
	}, []string{"kind", "outcome"})

	isLeader = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem:      "etcd_operator",
		Name:           "leader",
		Help:           "1 while this process holds the lease and acts, 0 otherwise.",
		StabilityLevel: metrics.ALPHA,
	})
)

// RegisterMetrics adds the metrics of this package to the registry that the process
// serves. It must be called once.
func RegisterMetrics() {
	legacyregistry.MustRegister(reconcileDuration, isLeader)
}

// acting is true while this process acts.
var acting atomic.Bool

// Leads says whether this process acts.
func Leads() bool { return acting.Load() }

// SetLeader says whether this process acts.
func SetLeader(leads bool) {
	acting.Store(leads)
	if leads {
		isLeader.Set(1)
		return
	}
	isLeader.Set(0)
}

func observeReconcile(kind string, took time.Duration, err error) {
	outcome := "success"
	if err != nil {
		outcome = "error"
	}
	reconcileDuration.WithLabelValues(kind, outcome).Observe(took.Seconds())
}
