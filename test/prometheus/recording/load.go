// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"github.com/etcd-operator/etcd-operator/test/prometheus/panels"
)

// Load appends all samples to a storage.
func (f File) Load(ctx context.Context, to storage.Appendable) error {
	lines := parser.NewParser(parser.Options{})
	appender := to.Appender(ctx)
	for _, line := range f.Series {
		metric, values, err := lines.ParseSeriesDesc(line)
		if err != nil {
			return errors.Join(fmt.Errorf("read series %s: %w", line, err), appender.Rollback())
		}
		for i, value := range values {
			if value.Omitted {
				continue
			}
			at := f.Start.Add(time.Duration(i) * f.Step.Duration).UnixMilli()
			if _, err := appender.Append(0, metric, at, value.Value); err != nil {
				return errors.Join(fmt.Errorf("append to %s: %w", metric, err), appender.Rollback())
			}
		}
	}
	return appender.Commit()
}

// Engine evaluates on a storage.
type Engine struct {
	*promql.Engine
	Storage storage.Queryable
}

// NewEngine returns an engine with the settings of a Prometheus.
func NewEngine(on storage.Queryable) Engine {
	return Engine{promql.NewEngine(promql.EngineOpts{
		MaxSamples: 50_000_000, Timeout: 2 * time.Minute, LookbackDelta: 5 * time.Minute,
		EnableAtModifier: true, EnableNegativeOffset: true, Parser: parser.NewParser(parser.Options{}),
	}), on}
}

// QueryRange implements panels.Querier.
func (e Engine) QueryRange(ctx context.Context, expr string, window panels.Window, step time.Duration) (model.Matrix, error) {
	query, err := e.NewRangeQuery(ctx, e.Storage, nil, expr, window.From, window.To, step)
	if err != nil {
		return nil, err
	}
	defer query.Close()
	result, err := query.Exec(ctx).Matrix()
	if err != nil {
		return nil, err
	}
	var matrix model.Matrix
	for _, series := range result {
		stream := &model.SampleStream{Metric: metricOf(series.Metric)}
		for _, point := range series.Floats {
			stream.Values = append(stream.Values, model.SamplePair{Timestamp: model.Time(point.T), Value: model.SampleValue(point.F)})
		}
		matrix = append(matrix, stream)
	}
	return matrix, nil
}

// Query implements panels.Querier.
func (e Engine) Query(ctx context.Context, expr string, at time.Time) (model.Vector, error) {
	query, err := e.NewInstantQuery(ctx, e.Storage, nil, expr, at)
	if err != nil {
		return nil, err
	}
	defer query.Close()
	result, err := query.Exec(ctx).Vector()
	if err != nil {
		return nil, err
	}
	var vector model.Vector
	for _, sample := range result {
		vector = append(vector, &model.Sample{Metric: metricOf(sample.Metric), Timestamp: model.Time(sample.T), Value: model.SampleValue(sample.F)})
	}
	return vector, nil
}

func metricOf(of labels.Labels) model.Metric {
	metric := model.Metric{}
	of.Range(func(l labels.Label) { metric[model.LabelName(l.Name)] = model.LabelValue(l.Value) })
	return metric
}
