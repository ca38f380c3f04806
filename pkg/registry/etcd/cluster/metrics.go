// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// The generic API server counts requests and their durations by subresource and code:
// apiserver_request_total, apiserver_request_duration_seconds.
var verdicts = metrics.NewCounterVec(&metrics.CounterOpts{
	Namespace: "etcd_operator", Subsystem: "apiserver", Name: "health_verdicts_total",
	Help:           "Responses of the subresource health, by verdict.",
	StabilityLevel: metrics.ALPHA,
}, []string{"verdict"})

var (
	snapshotStreams = metrics.NewGauge(&metrics.GaugeOpts{
		Namespace: "etcd_operator", Subsystem: "apiserver", Name: "snapshot_streams",
		Help:           "Number of snapshots that are streamed now.",
		StabilityLevel: metrics.ALPHA,
	})
	snapshots = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "etcd_operator", Subsystem: "apiserver", Name: "snapshots_total",
		Help:           "Snapshot requests that have ended, by outcome.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"outcome"})
	snapshotBytes = metrics.NewCounter(&metrics.CounterOpts{
		Namespace: "etcd_operator", Subsystem: "apiserver", Name: "snapshot_bytes_total",
		Help:           "Bytes of snapshots sent to clients.",
		StabilityLevel: metrics.ALPHA,
	})
)

var registerMetrics = sync.OnceFunc(func() {
	legacyregistry.MustRegister(verdicts, snapshotStreams, snapshots, snapshotBytes)
})
