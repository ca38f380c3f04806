// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Minutes of a scenario.
const (
	restMinutes  = 60
	badMinutes   = 120
	afterMinutes = 180
	// evaluation is how many minutes are between two evaluations of the rules.
	evaluation = 5
)

// promtool runs the program of Prometheus that tests rules.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		home, _ := os.UserHomeDir()
		path = filepath.Join(cmp.Or(os.Getenv("ETCD_OPERATOR_CACHE"), filepath.Join(home, ".cache/etcd-operator")), "tools/promtool")
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("promtool is not on the PATH and not in the cache of tools: %v; run hack/packages.sh", err)
	}
	if out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// The files that promtool reads. Only the fields that the tests use are here.
type (
	testFile struct {
		RuleFiles          []string    `json:"rule_files,omitempty"`
		EvaluationInterval string      `json:"evaluation_interval"`
		Tests              []testGroup `json:"tests"`
	}
	testGroup struct {
		Name           string      `json:"name"`
		Interval       string      `json:"interval"`
		InputSeries    []input     `json:"input_series"`
		AlertRuleTest  []alertTest `json:"alert_rule_test,omitempty"`
		PromqlExprTest []exprTest  `json:"promql_expr_test,omitempty"`
	}
	input struct {
		Series string `json:"series"`
		Values string `json:"values"`
	}
	alertTest struct {
		EvalTime  string   `json:"eval_time"`
		Alertname string   `json:"alertname"`
		ExpAlerts []firing `json:"exp_alerts"`
	}
	firing struct {
		ExpLabels      map[string]string `json:"exp_labels"`
		ExpAnnotations map[string]string `json:"exp_annotations"`
	}
	exprTest struct {
		Expr       string   `json:"expr"`
		EvalTime   string   `json:"eval_time"`
		ExpSamples []sample `json:"exp_samples"`
	}
	sample struct {
		Labels string  `json:"labels"`
		Value  float64 `json:"value"`
	}
)

// values returns the samples of a series, one each minute.
func (s series) values(t *testing.T) string {
	t.Helper()
	var parts []string
	value := 0.0
	for _, segment := range []struct {
		value   string
		minutes int
	}{{s.rest, restMinutes}, {s.bad, badMinutes}, {s.rest, afterMinutes}} {
		last := segment.minutes - 1
		slope := 0.0
		if segment.value == none {
			parts = append(parts, fmt.Sprintf("stale _x%d", last))
			continue
		}
		number, err := strconv.ParseFloat(segment.value, 64)
		if err != nil {
			t.Fatalf("series %s: %v", s.name, err)
		}
		if strings.HasPrefix(segment.value, "+") {
			slope = number
		} else {
			value = number
		}
		format := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
		parts = append(parts, fmt.Sprintf("%s+%sx%d", format(value), format(slope), last))
		value += slope * float64(segment.minutes)
	}
	return strings.Join(parts, " ")
}

// group returns a group of tests with the series, a controller that leads, and the phase of the cluster.
func group(t *testing.T, name, phase string, list []series) testGroup {
	t.Helper()
	g := testGroup{Name: name, Interval: "1m"}
	list = slices.Concat(list, []series{{`etcd_operator_cluster_info{namespace="n",name="c",phase="` + phase + `",version="3.6.16"}`, "1", "1"}})
	if !slices.ContainsFunc(list, func(s series) bool { return s.name == leads }) {
		list = append(list, series{leads, "1", "1"})
	}
	for _, s := range list {
		g.InputSeries = append(g.InputSeries, input{s.name, s.values(t)})
	}
	return g
}

func minute(m int) string { return fmt.Sprintf("%dm", m) }

// atRest expects that no alert fires at the minutes.
func atRest(minutes ...int) []exprTest {
	var list []exprTest
	for _, m := range minutes {
		list = append(list, exprTest{Expr: `ALERTS{alertstate="firing"}`, EvalTime: minute(m), ExpSamples: []sample{}})
	}
	return list
}

// TestAlertsFireAndResolve runs every scenario with promtool: the alert does not fire at rest,
// fires with the texts that a reader expects, resolves, and does not fire for a hibernated cluster.
func TestAlertsFireAndResolve(t *testing.T) {
	t.Parallel()
	alerts := alertsByName(t)
	rules, err := filepath.Abs(filepath.Join(root, alertsFile))
	if err != nil {
		t.Fatal(err)
	}
	file := testFile{RuleFiles: []string{rules}, EvaluationInterval: minute(evaluation)}
	tested := map[string]bool{}
	for _, s := range scenarios {
		rule, ok := alerts[s.alert]
		if !ok {
			t.Errorf("alert %s does not exist", s.alert)
			continue
		}
		tested[s.alert] = true
		at := cmp.Or(s.at, restMinutes+badMinutes-evaluation)
		labels := maps.Clone(s.labels)
		labels["severity"] = rule.Labels["severity"]
		description := template.ReplaceAllStringFunc(rule.Annotations["description"], func(found string) string {
			return labels[template.FindStringSubmatch(found)[1]]
		})
		running := group(t, s.alert, "Running", s.series)
		running.AlertRuleTest = []alertTest{{EvalTime: minute(at), Alertname: s.alert, ExpAlerts: []firing{{
			ExpLabels:      labels,
			ExpAnnotations: map[string]string{"summary": s.summary, "description": description, "runbook_url": rule.Annotations["runbook_url"]},
		}}}}
		running.PromqlExprTest = atRest(restMinutes-evaluation, restMinutes+badMinutes+afterMinutes-evaluation)
		file.Tests = append(file.Tests, running)
		if !s.alsoHibernated {
			hibernated := group(t, s.alert+", hibernated", "Hibernated", s.series)
			hibernated.AlertRuleTest = []alertTest{{EvalTime: minute(at), Alertname: s.alert, ExpAlerts: []firing{}}}
			file.Tests = append(file.Tests, hibernated)
		}
	}
	for name := range alerts {
		if !tested[name] {
			t.Errorf("no scenario tests alert %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(harmless)) {
		quiet := group(t, name, "Running", harmless[name])
		quiet.PromqlExprTest = atRest(restMinutes-evaluation, restMinutes+badMinutes-evaluation)
		file.Tests = append(file.Tests, quiet)
	}
	text, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "test.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", rules)
	promtool(t, "test", "rules", path)
}
