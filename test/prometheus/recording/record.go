// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/etcd-operator/etcd-operator/test/prometheus/panels"
)

// Metrics returns the names of the metrics that the expressions read.
func Metrics(exprs []string) ([]string, error) {
	var names []string
	expressions := parser.NewParser(parser.Options{})
	for _, text := range exprs {
		expr, err := expressions.ParseExpr(text)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", text, err)
		}
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			if selector, ok := node.(*parser.VectorSelector); ok {
				names = append(names, selector.Name)
			}
			return nil
		})
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// dropped are labels that no dashboard and no rule reads.
var dropped = []model.LabelName{"container", "endpoint"}

// broad are metrics with a series for each method or resource. Most of these series never change;
// a recording has only those that do.
var broad = []string{"grpc_server_", "apiserver_request_", "rest_client_", "workqueue_queue_duration_", "workqueue_work_duration_", "etcd_operator_reconcile_", "etcd_network_peer_"}

// Source is a Prometheus.
type Source interface {
	QueryRange(ctx context.Context, expr string, window panels.Window, step time.Duration) (model.Matrix, error)
}

// requests begins the names of metrics of every API server. Only requests for the objects of the
// operator are recorded.
const requests = "apiserver_request_"

// Record copies the series of metrics during a run: those of the cluster and of the programs of
// the operator.
func Record(ctx context.Context, from Source, run panels.Run, metrics []string, step time.Duration) (File, error) {
	f := File{Run: run, Start: run.Whole.From, Step: duration{step}}
	steps := int(run.Whole.To.Sub(run.Whole.From)/step) + 1
	for _, metric := range metrics {
		// The empty namespace is that of series without the label.
		selector := fmt.Sprintf(`%s{namespace=~"|%s|%s"}`, metric, run.Namespace, panels.SystemNamespace)
		if strings.HasPrefix(metric, requests) {
			selector = metric + `{group="etcd.database.coreos.com"}`
		}
		matrix, err := from.QueryRange(ctx, selector, run.Whole, step)
		if err != nil {
			return f, fmt.Errorf("read %s: %w", metric, err)
		}
		moving := groupsThatChange(matrix)
		for _, series := range matrix {
			isBroad := slices.ContainsFunc(broad, func(prefix string) bool { return strings.HasPrefix(metric, prefix) })
			if isBroad && !moving[group(series.Metric)] {
				continue
			}
			values := slices.Repeat([]float64{none}, steps)
			for _, pair := range series.Values {
				// Rounded, because a Prometheus has times in milliseconds.
				values[(pair.Timestamp.Time().Sub(f.Start)+step/2)/step] = float64(pair.Value)
			}
			f.Series = append(f.Series, name(series.Metric)+" "+encode(values))
		}
	}
	slices.Sort(f.Series)
	for i := range max(len(f.Series)-1, 0) {
		if before, _, _ := strings.Cut(f.Series[i], "} "); strings.HasPrefix(f.Series[i+1], before+"} ") {
			return f, fmt.Errorf("%w: two series have the labels %s}", errFormat, before)
		}
	}
	return f, nil
}

// groupsThatChange returns the groups with a series whose value changes. The buckets of a histogram
// are one group: without one of them the histogram is another.
func groupsThatChange(matrix model.Matrix) map[string]bool {
	changing := map[string]bool{}
	for _, series := range matrix {
		first := series.Values[0].Value
		if slices.ContainsFunc(series.Values, func(pair model.SamplePair) bool { return pair.Value != first }) {
			changing[group(series.Metric)] = true
		}
	}
	return changing
}

func group(metric model.Metric) string {
	all := metric.Clone()
	delete(all, "le")
	return all.String()
}

// name writes the name and the labels of a series, without labels that nothing reads.
func name(metric model.Metric) string {
	kept := metric.Clone()
	for _, label := range dropped {
		delete(kept, label)
	}
	if len(kept) == 1 {
		return kept.String() + "{}"
	}
	return kept.String()
}
