// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// dashboard is the part of a dashboard that the tests read.
type dashboard struct {
	UID, Title  string
	Templating  struct{ List []variable }
	Annotations struct{ List []struct{ Expr string } }
	Panels      []panel
}

type variable struct{ Name, Type, Query string }

type panel struct {
	ID                 int
	Title, Description string
	GridPos            struct{ X, Y, W, H int }
	Targets            []struct{ Expr, LegendFormat string }
}

var (
	legend      = regexp.MustCompile(`\{\{(\w+)\}\}`)
	labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
	// filledIn replaces the variables of Grafana by values of the samples.
	filledIn = strings.NewReplacer("$__rate_interval", "5m", "$namespace", "n", "$name", "c")
)

func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "artifacts/monitoring/dashboards/*.json"))
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]dashboard{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		if list[name] = d; d.UID != "etcd-operator-"+name || d.Title == "" {
			t.Errorf("%s has the UID %q and the title %q", file, d.UID, d.Title)
		}
	}
	for _, name := range []string{"fleet", "cluster", "operator"} {
		if _, ok := list[name]; !ok {
			t.Errorf("there is no dashboard %s", name)
		}
	}
	return list
}

// queries returns all expressions of a dashboard: those of panels, of events and of variables.
func (d dashboard) queries(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			list = append(list, target.Expr)
		}
	}
	for _, a := range d.Annotations.List {
		list = append(list, a.Expr)
	}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		match := labelValues.FindStringSubmatch(v.Query)
		if match == nil {
			t.Errorf("%s: variable %s has the query %q, want label_values", d.Title, v.Name, v.Query)
			continue
		}
		list = append(list, "count by ("+match[2]+") ("+match[1]+")")
	}
	for i, expr := range list {
		if list[i] = filledIn.Replace(expr); strings.Contains(list[i], "$") {
			t.Errorf("%s: a variable in %q has no value", d.Title, expr)
		}
	}
	return list
}

// TestPanels: panels have texts and queries, do not overlap, and a legend names only labels
// that the query has.
func TestPanels(t *testing.T) {
	t.Parallel()
	known := exported(t)
	addOthers(known)
	for _, d := range dashboards(t) {
		taken := map[[2]int]string{}
		ids := map[int]bool{}
		for _, p := range d.Panels {
			if p.Title == "" || p.Description == "" || len(p.Targets) == 0 || ids[p.ID] {
				t.Errorf("%s: panel %d %q has no title, description or query, or its ID is used twice", d.Title, p.ID, p.Title)
			}
			ids[p.ID] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
						t.Fatalf("%s: panel %q is outside of the grid or overlaps panel %q", d.Title, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
			for _, target := range p.Targets {
				var text strings.Builder
				for _, match := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
					text.WriteString("{{ $labels." + match[1] + " }}")
				}
				checkRule(t, d.Title+", "+p.Title, filledIn.Replace(target.Expr), text.String(), known)
			}
		}
	}
}

// TestMetricsOfMembersAreUsed: the list of metrics of etcd has none that alerts and dashboards
// do not use, so that a reader can compare it with a new version of etcd.
func TestMetricsOfMembersAreUsed(t *testing.T) {
	t.Parallel()
	var used []string
	for _, rule := range alertsByName(t) {
		used = append(used, names(rule.Expr)...)
	}
	for _, d := range dashboards(t) {
		for _, expr := range d.queries(t) {
			used = append(used, names(expr)...)
		}
	}
	for _, list := range []map[string][]string{ofEtcd, ofKubernetes} {
		for name := range list {
			if !slices.Contains(used, name) && !slices.Contains(used, name+"_bucket") {
				t.Errorf("no alert and no dashboard uses %s", name)
			}
		}
	}
}

// samples are a fleet in which something is wrong, so that each table has a row.
var samples = []series{
	{`etcd_operator_cluster_info{namespace="n",name="c",phase="Running",version="3.6.16"}`, "1", "1"},
	{"etcd_operator_cluster_tolerance" + ofCluster, "0", "0"},
	{"etcd_operator_cluster_size" + ofCluster, "3", "3"},
	{readyMembers, "2", "2"},
	{condition("Available", "False"), "1", "1"},
	{condition("Upgrading", "True"), "1", "1"},
	{condition("BackupHealthy", "False"), "1", "1"},
	{`etcd_operator_cluster_operation_in_progress{namespace="n",name="c",type="Defrag"}`, "1", "1"},
	{blockedSince, "0", "0"},
	{lastBackup, "0", "0"},
	{notAfter, "9999999", "9999999"},
	{databaseSize, "85", "85"},
	{databaseInUse, "50", "50"},
	{quota, "100", "100"},
	{metricsOfMember + ofMember, "1", "1"},
	{"etcd_server_leader_changes_seen_total" + ofMember, "+1", "+1"},
	{"process_start_time_seconds" + ofMember, "1", "1"},
	{"etcd_server_proposals_committed_total" + ofMember, "+60", "+60"},
	{"etcd_server_proposals_failed_total" + ofMember, "+1", "+1"},
	{"etcd_server_proposals_pending" + ofMember, "0", "0"},
	{"etcd_server_slow_apply_total" + ofMember, "+1", "+1"},
	{`etcd_disk_wal_fsync_duration_seconds_bucket{namespace="n",name="c",pod="c-1",le="+Inf"}`, "+9", "+9"},
	{`etcd_disk_backend_commit_duration_seconds_bucket{namespace="n",name="c",pod="c-1",le="+Inf"}`, "+9", "+9"},
	{`etcd_network_peer_round_trip_time_seconds_bucket{namespace="n",name="c",pod="c-1",To="8e9e05c52164694d",le="+Inf"}`, "+9", "+9"},
	{`grpc_server_handled_total{namespace="n",name="c",pod="c-1",grpc_code="OK"}`, "+60", "+60"},
	{leads, "1", "1"},
	{`etcd_operator_reconcile_duration_seconds_count{kind="EtcdCluster",outcome="success"}`, "+9", "+9"},
	{`etcd_operator_reconcile_duration_seconds_bucket{kind="EtcdCluster",outcome="success",le="+Inf"}`, "+9", "+9"},
	{`workqueue_depth{job="etcd-operator-system/etcd-operator-controller",name="EtcdCluster"}`, "1", "1"},
	{`workqueue_queue_duration_seconds_bucket{job="etcd-operator-system/etcd-operator-controller",name="EtcdCluster",le="+Inf"}`, "+9", "+9"},
	{`rest_client_requests_total{job="etcd-operator-system/etcd-operator-controller",code="200"}`, "+9", "+9"},
	{`etcd_operator_backup_attempts_total{reason="Succeeded",storage_type="S3"}`, "+1", "+1"},
	{`etcd_operator_restores_total{result="Succeeded"}`, "+1", "+1"},
	{`apiserver_request_total{job="etcd-operator-system/etcd-operator-apiserver",code="200"}`, "+9", "+9"},
	{`apiserver_request_duration_seconds_bucket{job="etcd-operator-system/etcd-operator-apiserver",verb="GET",le="+Inf"}`, "+9", "+9"},
	{`etcd_operator_apiserver_probe_member_responses_total{outcome="Healthy"}`, "+9", "+9"},
	{"etcd_operator_apiserver_probes_in_flight", "1", "1"},
	{`etcd_operator_apiserver_probe_duration_seconds_bucket{le="+Inf"}`, "+9", "+9"},
	{storageSize, "100", "100"},
	{storageFree, "900", "900"},
	{"etcd_operator_apiserver_snapshot_bytes_total", "+9", "+9"},
}

// TestQueriesHaveResults has promtool evaluate each query of each dashboard on samples. A query
// that does not parse, or whose labels do not match, has no result. Grafana takes no part.
func TestQueriesHaveResults(t *testing.T) {
	t.Parallel()
	g := testGroup{Name: "dashboards", Interval: "1m"}
	for _, s := range samples {
		g.InputSeries = append(g.InputSeries, input{s.name, s.values(t)})
	}
	for _, d := range dashboards(t) {
		for _, expr := range d.queries(t) {
			g.PromqlExprTest = append(g.PromqlExprTest, exprTest{
				Expr: "count(" + expr + ") > bool 0", EvalTime: minute(restMinutes), ExpSamples: []sample{{Labels: "{}", Value: 1}},
			})
		}
	}
	text, err := yaml.Marshal(testFile{EvaluationInterval: minute(evaluation), Tests: []testGroup{g}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "dashboards.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "test", "rules", path)
}
