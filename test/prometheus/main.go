// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/etcd-operator/etcd-operator/test/prometheus/panels"
	"github.com/etcd-operator/etcd-operator/test/prometheus/recording"
)

const (
	// liveStep is between two evaluations, and liveRate the interval of rates, of a Prometheus
	// that scrapes every two seconds.
	liveStep = time.Second
	liveRate = 10 * time.Second
	// recordedStep is between two samples of a recording.
	recordedStep = 5 * time.Second
)

func main() {
	url := flag.String("url", "", "URL of a Prometheus")
	runFile := flag.String("run", "", "file that says what happened when, in JSON")
	monitoring := flag.String("monitoring", "../../artifacts/monitoring", "directory of the dashboards and rules")
	record := flag.String("record", "", "file that gets the series of the run")
	flag.Parse()
	if err := check(context.Background(), *url, *runFile, *monitoring, *record); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

var errQueries = errors.New("queries of dashboards do not show the run")

func check(ctx context.Context, url, runFile, monitoring, record string) error {
	client, err := api.NewClient(api.Config{Address: url})
	if err != nil {
		return err
	}
	server := server{v1.NewAPI(client)}
	text, err := os.ReadFile(runFile)
	if err != nil {
		return err
	}
	var run panels.Run
	if err := json.Unmarshal(text, &run); err != nil {
		return fmt.Errorf("read %s: %w", runFile, err)
	}
	queries, err := panels.Read(filepath.Join(monitoring, "dashboards"), run.Values(liveRate))
	if err != nil {
		return err
	}
	if record != "" {
		if err := server.record(ctx, run, queries, monitoring, record); err != nil {
			return err
		}
	}
	report := panels.Check(ctx, server, run, queries, liveStep)
	fmt.Printf("%d queries, evaluated in %d windows\n", len(queries), len(run.Windows))
	if len(report.Problems) > 0 {
		return fmt.Errorf("%w:\n%s", errQueries, strings.Join(report.Problems, "\n"))
	}
	return nil
}

// server is a Prometheus.
type server struct{ v1.API }

// QueryRange implements panels.Querier.
func (s server) QueryRange(ctx context.Context, expr string, window panels.Window, step time.Duration) (model.Matrix, error) {
	value, warnings, err := s.API.QueryRange(ctx, expr, v1.Range{Start: window.From, End: window.To, Step: step})
	if err != nil {
		return nil, err
	}
	matrix, ok := value.(model.Matrix)
	if !ok || len(warnings) > 0 {
		return nil, fmt.Errorf("%w: %s is a %v with warnings %q", errQueries, expr, value.Type(), warnings)
	}
	return matrix, nil
}

// Query implements panels.Querier.
func (s server) Query(ctx context.Context, expr string, at time.Time) (model.Vector, error) {
	value, warnings, err := s.API.Query(ctx, expr, at)
	if err != nil {
		return nil, err
	}
	vector, ok := value.(model.Vector)
	if !ok || len(warnings) > 0 {
		return nil, fmt.Errorf("%w: %s is a %v with warnings %q", errQueries, expr, value.Type(), warnings)
	}
	return vector, nil
}

func (s server) record(ctx context.Context, run panels.Run, queries []panels.Query, monitoring, file string) error {
	rules, err := recording.ReadRules(monitoring)
	if err != nil {
		return err
	}
	exprs := rules.Exprs()
	for _, q := range queries {
		exprs = append(exprs, q.Expr)
	}
	metrics, err := recording.Metrics(exprs)
	if err != nil {
		return err
	}
	recorded, err := recording.Record(ctx, s, run, metrics, recordedStep)
	if err != nil {
		return err
	}
	return recorded.Write(file)
}
