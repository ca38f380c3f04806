// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/prometheus/prometheus/util/teststorage"

	"github.com/etcd-operator/etcd-operator/test/prometheus/panels"
)

// TestEvaluate: an alert fires as long as its expression has data, and a recording rule records.
func TestEvaluate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"rules.yaml": "groups:\n- name: g\n  rules:\n  - {alert: A, expr: m > 1}\n  - {record: 'm:double', expr: 2 * m}\n",
		"other.yaml": "kind: PodMonitor\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rules, err := ReadRules(dir)
	if err != nil {
		t.Fatal(err)
	}
	if metrics, err := Metrics(rules.Exprs()); err != nil || !reflect.DeepEqual(metrics, []string{"m"}) {
		t.Errorf("the rules read %q: %v", metrics, err)
	}
	f := File{
		Run:   panels.Run{Whole: panels.Window{From: from, To: from.Add(50 * time.Second)}},
		Start: from, Step: duration{10 * time.Second}, Series: []string{"m{} 0x1 5x1 0x1"},
	}
	store := teststorage.New(t)
	if err := f.Load(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	engine := NewEngine(store)
	if err := rules.Evaluate(t.Context(), f, engine, store); err != nil {
		t.Fatal(err)
	}
	for expr, want := range map[string]int{`ALERTS{alertname="A",alertstate="firing"}`: 2, "m:double": 5} {
		matrix, err := engine.QueryRange(t.Context(), expr, f.Run.Whole, f.Step.Duration)
		if err != nil || len(matrix) != 1 || len(matrix[0].Values) != want {
			t.Errorf("%s is %v (%v), want %d values", expr, matrix, err, want)
		}
	}
}
