// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/util/teststorage"

	"github.com/etcd-operator/etcd-operator/test/prometheus/panels"
	"github.com/etcd-operator/etcd-operator/test/prometheus/recording"
)

const (
	monitoring   = "../../artifacts/monitoring"
	recordedRun  = "testdata/run.txt"
	recordedRate = 4 * recordedStep
	maximum      = 300 << 10
)

// load returns the recorded run in an engine, with a storage that takes the outcome of rules, too.
func load(t *testing.T) (recording.File, recording.Engine, *teststorage.TestStorage) {
	t.Helper()
	f, err := recording.Read(recordedRun)
	if err != nil {
		t.Fatal(err)
	}
	store := teststorage.New(t)
	if err := f.Load(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	return f, recording.NewEngine(store), store
}

// TestRecordedRun evaluates every query of every dashboard on the series of a real run. Each has data
// at each event, but for the exceptions, which must be needed.
func TestRecordedRun(t *testing.T) {
	t.Parallel()
	f, engine, _ := load(t)
	queries, err := panels.Read(monitoring+"/dashboards", f.Run.Values(recordedRate))
	if err != nil {
		t.Fatal(err)
	}
	report := panels.Check(t.Context(), engine, f.Run, queries, recordedStep)
	for _, problem := range append(report.Problems, report.Outdated...) {
		t.Error(problem)
	}
}

// TestRulesOnRecordedRun evaluates all rules at each step of the run. Exactly the alerts that the loss
// of the quorum and the recovery call for fire, and each recording rule has data.
func TestRulesOnRecordedRun(t *testing.T) {
	t.Parallel()
	f, engine, store := load(t)
	rules, err := recording.ReadRules(monitoring)
	if err != nil {
		t.Fatal(err)
	}
	if err := rules.Evaluate(t.Context(), f, engine, store); err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules.All {
		if rule.Record == "" {
			continue
		}
		if matrix, err := engine.QueryRange(t.Context(), rule.Record, f.Run.Whole, recordedStep); err != nil || len(matrix) == 0 {
			t.Errorf("rule %s records nothing: %v", rule.Record, err)
		}
	}
	matrix, err := engine.QueryRange(t.Context(), `ALERTS{alertstate="firing"}`, f.Run.Whole, recordedStep)
	if err != nil {
		t.Fatal(err)
	}
	var fired []string
	loss := f.Run.Windows[panels.QuorumLoss]
	for _, series := range matrix {
		name := string(series.Metric["alertname"])
		fired = append(fired, name)
		first, last := series.Values[0].Timestamp.Time(), series.Values[len(series.Values)-1].Timestamp.Time()
		if name == "EtcdClusterQuorumLost" && (first.Before(loss.From) || last.After(loss.To) || len(series.Values) < 2) {
			t.Errorf("%s fires from %v to %v, want some time between %v and %v", name, first, last, loss.From, loss.To)
		}
		if series.Metric["namespace"] != model.LabelValue(f.Run.Namespace) || series.Metric["name"] != model.LabelValue(f.Run.Cluster) {
			t.Errorf("%s has the labels %v", name, series.Metric)
		}
	}
	slices.Sort(fired)
	if got := strings.Join(slices.Compact(fired), " "); got != "EtcdClusterQuorumLost EtcdClusterRecovered" {
		t.Errorf("these alerts fired: %s", got)
	}
}

// TestRecordingIsSmall: the file is read by each run of the unit tests, and stays in the history of
// the repository.
func TestRecordingIsSmall(t *testing.T) {
	t.Parallel()
	info, err := os.Stat(recordedRun)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maximum {
		t.Errorf("%s has %d bytes, more than %d", recordedRun, info.Size(), maximum)
	}
	f, err := recording.Read(recordedRun)
	if err != nil {
		t.Fatal(err)
	}
	if length := f.Run.Whole.To.Sub(f.Run.Whole.From); length > 5*time.Minute || len(f.Series) < 100 {
		t.Errorf("the run took %v and has %d series", length, len(f.Series))
	}
}
