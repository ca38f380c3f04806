// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"
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

	statusFieldsLeftOut = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      "etcd_operator",
		Name:           "status_fields_left_out_total",
		Help:           "Statuses from which the controller left out fields that the API rejects, by kind.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"kind"})

	writesBounded = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      "etcd_operator",
		Name:           "writes_bounded_total",
		Help:           "Objects that the controller did not write because it had written too much for their namespace, by namespace.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"namespace"})

	leasesNotObeyed = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem:      "etcd_operator",
		Name:           "leases_not_obeyed",
		Help:           "Leases in other namespaces for clusters of this controller. Each is that of a second installation, or a forgery.",
		StabilityLevel: metrics.ALPHA,
	})

	storageRestartBefore = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem:      "etcd_operator",
		Name:           "storage_restart_before_timestamp_seconds",
		Help:           "By when the members and the API servers must restart, because the CA of the storage was lost. 0 while they need not.",
		StabilityLevel: metrics.ALPHA,
	})

	isLeader = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem:      "etcd_operator",
		Name:           "leader",
		Help:           "1 while this process holds the lease and acts, 0 otherwise.",
		StabilityLevel: metrics.ALPHA,
	})
)

// Register adds the metrics of this package that need no cache to the registry that the
// process serves.
var Register = sync.OnceFunc(func() {
	legacyregistry.MustRegister(reconcileDuration, statusFieldsLeftOut, writesBounded, isLeader, leasesNotObeyed, storageRestartBefore)
	legacyregistry.MustRegister(attempts, backupDuration, lastSuccess, lastSize, healthy)
	legacyregistry.MustRegister(restoresEnded, restoreDuration)
})

// leading is true while this process holds the lease.
var leading atomic.Bool

// IsLeader is true while this process holds the lease and acts.
func IsLeader() bool { return leading.Load() }

// SetLeader records whether this process holds the lease.
func SetLeader(leads bool) {
	leading.Store(leads)
	if leads {
		isLeader.Set(1)
		return
	}
	isLeader.Set(0)
}

// SetLeasesNotObeyed records how many leases of others are for clusters that this controller looks after all the same.
func SetLeasesNotObeyed(n int) { leasesNotObeyed.Set(float64(n)) }

// SetStorageRestartBefore records by when the members of the storage and the API servers must restart; zero for never.
func SetStorageRestartBefore(at time.Time) {
	if at.IsZero() {
		storageRestartBefore.Set(0)
		return
	}
	storageRestartBefore.Set(float64(at.Unix()))
}

// ObserveReconcile records the end of one reconcile of an object of a kind.
func ObserveReconcile(kind string, took time.Duration, err error) {
	outcome := "success"
	if err != nil {
		outcome = "error"
	}
	reconcileDuration.WithLabelValues(kind, outcome).Observe(took.Seconds())
}

// WriteBounded records that an object was not written, because its namespace has used what may be written for it.
func WriteBounded(namespace string) { writesBounded.WithLabelValues(namespace).Inc() }

// StatusFieldsLeftOut records that a status of a kind lacks what the API rejects.
func StatusFieldsLeftOut(kind string) { statusFieldsLeftOut.WithLabelValues(kind).Inc() }
