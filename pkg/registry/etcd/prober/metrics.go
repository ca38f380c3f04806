// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"errors"
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/health"
)

const namespace = "etcd_operator"

var (
	probesInFlight = metrics.NewGauge(&metrics.GaugeOpts{
		Namespace: namespace, Subsystem: "apiserver", Name: "probes_in_flight",
		Help:           "Clusters that the API server is probing now.",
		StabilityLevel: metrics.ALPHA,
	})
	probeSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Namespace: namespace, Subsystem: "apiserver", Name: "probe_duration_seconds",
		Help:           "Time that the probe of all members of a cluster took.",
		Buckets:        []float64{0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 1.5, 2, 3},
		StabilityLevel: metrics.ALPHA,
	})
	memberResponses = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: namespace, Subsystem: "apiserver", Name: "probe_member_responses_total",
		Help:           "Probed members, by outcome: responded, timeout, unreachable, rejected.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"outcome"})
)

// RegisterMetrics serves the metrics of this package at /metrics.
var RegisterMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(probesInFlight, probeSeconds, memberResponses) })

func recordProbe(p *health.Probe) {
	probeSeconds.Observe(p.Took.Seconds())
	for i := range p.Responses {
		memberResponses.WithLabelValues(outcome(p.Responses[i].Err)).Inc()
	}
}

func outcome(err error) string {
	switch {
	case err == nil:
		return "responded"
	case errors.Is(err, etcd.ErrTimeout):
		return "timeout"
	case errors.Is(err, etcd.ErrUnavailable):
		return "unreachable"
	default:
		return "rejected"
	}
}
