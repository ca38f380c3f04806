// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package panels

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const shipped = "../../../artifacts/monitoring/dashboards"

var values = map[string]string{"namespace": "n", "name": "c", "__rate_interval": "1m"}

func write(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "d.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRead(t *testing.T) {
	t.Parallel()
	got, err := Read(write(t, `{
		"panels": [
			{"title": "P", "type": "timeseries", "targets": [{"expr": "rate(a{namespace=\"$namespace\",name=\"$name\"}[$__rate_interval])", "legendFormat": "{{pod}} to {{To}}"}]},
			{"title": "T", "type": "table", "targets": [{"expr": "b", "instant": true}]}],
		"annotations": {"list": [{"name": "A", "expr": "d", "textFormat": "{{type}}"}]},
		"templating": {"list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}, {"name": "name", "type": "query", "query": "label_values(c{namespace=\"$namespace\"}, name)"}]}}`), values)
	if err != nil {
		t.Fatal(err)
	}
	want := []Query{
		{"d", "P", "{{pod}} to {{To}}", `rate(a{namespace="n",name="c"}[1m])`, false, []string{"pod", "To"}},
		{"d", "T", "", "b", true, []string{"namespace"}},
		{"d", "annotation A", "{{type}}", "d", false, []string{"type"}},
		{"d", "variable name", "", `count by (name) (c{namespace="n"})`, false, []string{"name"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%+v, want\n%+v", got, want)
	}
}

func TestDashboardsThatCannotBeEvaluated(t *testing.T) {
	t.Parallel()
	const panel = `{"title": "P", "targets": [{"expr": "%s", "legendFormat": "l"}]}`
	for what, text := range map[string]string{
		"has no value": `{"panels": [` + strings.Replace(panel, "%s", "a{b='$other'}", 1) + `]}`,
		"two queries":  `{"panels": [` + panel + "," + panel + `]}`,
		"label_values": `{"templating": {"list": [{"name": "v", "type": "query", "query": "metrics(a)"}]}}`,
	} {
		if _, err := Read(write(t, text), values); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v, want one about %q", err, what)
		}
	}
}

// TestShippedDashboards: exceptions and facts are about queries that exist, and are needed.
func TestShippedDashboards(t *testing.T) {
	t.Parallel()
	queries, err := Read(shipped, values)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, q := range queries {
		known[q.ID()] = true
	}
	for id, e := range exceptions {
		if !known[id] || e.why == "" || len(e.events) >= len(Events) {
			t.Errorf("exception %q is about no query, has no reason, or has each event", id)
		}
	}
	for _, f := range facts {
		if !known[f.query] {
			t.Errorf("a fact is about %q, which is no query", f.query)
		}
	}
}
