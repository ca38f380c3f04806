// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Requests and their durations, by subresource and code, are counted by the generic
// API server already: apiserver_request_total, apiserver_request_duration_seconds.
var verdicts = metrics.NewCounterVec(&metrics.CounterOpts{
	Namespace: "etcd_operator", Subsystem: "apiserver", Name: "health_verdicts_total",
	Help:           "Answers of the subresource health, by verdict.",
	StabilityLevel: metrics.ALPHA,
}, []string{"verdict"})

var (
	streams = metrics.NewGauge(&metrics.GaugeOpts{
		Namespace: "etcd_operator", Subsystem: "apiserver", Name: "snapshot_streams",
		Help:           "Snapshots that are being streamed.",
		StabilityLevel: metrics.ALPHA,
	})
	snapshots = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "etcd_operator", Subsystem: "apiserver", Name: "snapshots_total",
		Help:           "Requests for a snapshot that have ended, by outcome: complete, refused, source_failed, client_failed.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"outcome"})
	snapshotBytes = metrics.NewCounter(&metrics.CounterOpts{
		Namespace: "etcd_operator", Subsystem: "apiserver", Name: "snapshot_bytes_total",
		Help:           "Bytes of snapshots that were streamed.",
		StabilityLevel: metrics.ALPHA,
	})
)

var registerMetrics = sync.OnceFunc(func() {
	legacyregistry.MustRegister(verdicts, streams, snapshots, snapshotBytes)
})
