// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package panels

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// SystemNamespace is where the programs of the operator run.
const SystemNamespace = "etcd-operator-system"

// Window is the time of an event.
type Window struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Run is a time in which something happened to an EtcdCluster.
type Run struct {
	Namespace string `json:"namespace"`
	Cluster   string `json:"cluster"`
	// From and To are the versions of the upgrade.
	From    string           `json:"from"`
	To      string           `json:"to"`
	Whole   Window           `json:"whole"`
	Windows map[Event]Window `json:"windows"`
}

// Values are the values of the variables of the dashboards. The rate interval covers at least
// four samples, as Grafana chooses it.
func (r Run) Values(rateInterval time.Duration) map[string]string {
	return map[string]string{"namespace": r.Namespace, "name": r.Cluster, "__rate_interval": model.Duration(rateInterval).String()}
}

// Querier evaluates an expression at each step of a window, as graphs need it, or at one time,
// as tables need it.
type Querier interface {
	QueryRange(ctx context.Context, expr string, window Window, step time.Duration) (model.Matrix, error)
	Query(ctx context.Context, expr string, at time.Time) (model.Vector, error)
}

// evaluate evaluates a query as Grafana does: that of a table at each step by itself.
func evaluate(ctx context.Context, querier Querier, q Query, window Window, step time.Duration) (model.Matrix, error) {
	if !q.Instant {
		return querier.QueryRange(ctx, q.Expr, window, step)
	}
	rows := map[string]*model.SampleStream{}
	for at := window.From; !at.After(window.To); at = at.Add(step) {
		vector, err := querier.Query(ctx, q.Expr, at)
		if err != nil {
			return nil, err
		}
		for _, sample := range vector {
			row := rows[sample.Metric.String()]
			if row == nil {
				row = &model.SampleStream{Metric: sample.Metric}
				rows[sample.Metric.String()] = row
			}
			row.Values = append(row.Values, model.SamplePair{Timestamp: sample.Timestamp, Value: sample.Value})
		}
	}
	return slices.Collect(maps.Values(rows)), nil
}

// Report is the outcome of Check.
type Report struct {
	// Problems are what is wrong, one sentence each.
	Problems []string
	// Outdated are exceptions without a need: the query has data at each event.
	Outdated []string
}

// Check evaluates the queries in the window of each event of the run.
func Check(ctx context.Context, querier Querier, run Run, queries []Query, step time.Duration) Report {
	var report Report
	known := map[string]bool{}
	shown := map[int]bool{}
	for _, q := range queries {
		known[q.ID()] = true
		want, isException := exceptions[q.ID()]
		if !isException {
			want.events = Events
		}
		withData := 0
		for _, event := range Events {
			window := run.Windows[event]
			window.To = window.To.Add(step)
			matrix, err := evaluate(ctx, querier, q, window, step)
			if err != nil {
				report.problem(q, event, "%v", err)
				continue
			}
			matrix = keepData(run, matrix)
			if len(matrix) > 0 {
				withData++
			} else if slices.Contains(want.events, event) {
				report.problem(q, event, "no data for %s", q.Expr)
			}
			report.checkLabels(q, event, matrix)
			for i, f := range facts {
				if f.query == q.ID() && f.event == event && slices.ContainsFunc(matrix, func(s *model.SampleStream) bool { return f.isShownBy(run, s) }) {
					shown[i] = true
				}
			}
		}
		// Others have data by chance, if another cluster is upgraded or a member is slow.
		if isException && len(want.events) == 0 && withData == len(Events) {
			report.Outdated = append(report.Outdated, q.ID()+" has data at each event and needs no exception")
		}
	}
	for id := range exceptions {
		if !known[id] {
			report.Problems = append(report.Problems, fmt.Sprintf("no dashboard has the query %q of the exceptions", id))
		}
	}
	for i, f := range facts {
		if !shown[i] {
			report.Problems = append(report.Problems, fmt.Sprintf("%s at %s: no series has %v", f.query, f.event, f.labels))
		}
	}
	slices.Sort(report.Problems)
	return report
}

func (r *Report) problem(q Query, event Event, format string, args ...any) {
	r.Problems = append(r.Problems, q.ID()+" at "+string(event)+": "+fmt.Sprintf(format, args...))
}

// checkLabels: each series has the labels that a reader sees, and no two series look the same.
func (r *Report) checkLabels(q Query, event Event, matrix model.Matrix) {
	seen := map[string]bool{}
	for _, series := range matrix {
		var text strings.Builder
		for _, label := range q.Labels {
			value := series.Metric[model.LabelName(label)]
			if value == "" {
				r.problem(q, event, "a series has no label %s: %v", label, series.Metric)
			}
			fmt.Fprintf(&text, "%s ", value)
		}
		if q.Legend != "" && seen[text.String()] {
			r.problem(q, event, "two series have the legend %q", text.String())
		}
		seen[text.String()] = true
	}
}

func (f fact) isShownBy(run Run, series *model.SampleStream) bool {
	values := strings.NewReplacer("$namespace", run.Namespace, "$cluster", run.Cluster, "$from", run.From, "$to", run.To)
	for label, value := range f.labels {
		if string(series.Metric[model.LabelName(label)]) != values.Replace(value) {
			return false
		}
	}
	return true
}

// keepData leaves out series of other clusters, which other tests make, and series without a
// number: a percentile without observations is NaN.
func keepData(run Run, matrix model.Matrix) model.Matrix {
	return slices.DeleteFunc(slices.Clone(matrix), func(series *model.SampleStream) bool {
		if namespace := string(series.Metric["namespace"]); namespace != "" && namespace != run.Namespace && namespace != SystemNamespace {
			return true
		}
		return !slices.ContainsFunc(series.Values, func(pair model.SamplePair) bool {
			return !math.IsNaN(float64(pair.Value)) && !math.IsInf(float64(pair.Value), 0)
		})
	})
}
