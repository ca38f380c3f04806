// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"errors"
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/picture"
)

const namespace = "etcd_operator"

var (
	asksInFlight = metrics.NewGauge(&metrics.GaugeOpts{
		Namespace: namespace, Subsystem: "apiserver", Name: "live_asks_in_flight",
		Help:           "Clusters whose members are being asked now.",
		StabilityLevel: metrics.ALPHA,
	})
	askSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Namespace: namespace, Subsystem: "apiserver", Name: "live_ask_duration_seconds",
		Help:           "How long it took to ask all members of a cluster.",
		Buckets:        []float64{0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 1.5, 2, 3},
		StabilityLevel: metrics.ALPHA,
	})
	memberAnswers = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: namespace, Subsystem: "apiserver", Name: "live_member_answers_total",
		Help:           "Members that were asked, by outcome: answered, timeout, unreachable, refused.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"outcome"})
)

// RegisterMetrics shows the metrics of this package at /metrics.
var RegisterMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(asksInFlight, askSeconds, memberAnswers) })

func observeAsk(p *picture.Picture) {
	askSeconds.Observe(p.Took.Seconds())
	for i := range p.Answers {
		memberAnswers.WithLabelValues(outcome(p.Answers[i].Err)).Inc()
	}
}

func outcome(err error) string {
	switch {
	case err == nil:
		return "answered"
	case errors.Is(err, etcd.ErrTimeout):
		return "timeout"
	case errors.Is(err, etcd.ErrUnavailable):
		return "unreachable"
	default:
		return "refused"
	}
}
