// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package panels

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Query is one expression of a dashboard. Its variables have values.
type Query struct {
	Dashboard string
	// Panel is the title of a panel, or the name of an annotation or a variable.
	Panel string
	// Legend names the series. It is empty for tables and variables.
	Legend string
	Expr   string
	// Instant is true for a table, which shows one time.
	Instant bool
	// Labels are what the reader sees of each series.
	Labels []string
}

// ID identifies the query among the queries of all dashboards.
func (q Query) ID() string {
	id := q.Dashboard + ": " + q.Panel
	if q.Legend != "" {
		id += ": " + q.Legend
	}
	return id
}

// file is the part of a dashboard that has queries.
type file struct {
	Panels []struct {
		Title, Type string
		Targets     []struct {
			Expr, LegendFormat string
			Instant            bool
		}
	}
	Annotations struct {
		List []struct{ Name, Expr, TextFormat string }
	}
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
}

var (
	legendLabel = regexp.MustCompile(`\{\{(\w+)\}\}`)
	labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

	errDashboard = errors.New("the dashboard cannot be evaluated")
)

// Read reads all dashboards of a directory. Values has the value of each variable.
func Read(dir string, values map[string]string) ([]Query, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []Query
	ids := map[string]bool{}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var f file
		if err := json.Unmarshal(text, &f); err != nil {
			return nil, fmt.Errorf("read dashboard %s: %w", path, err)
		}
		queries, err := f.queries(strings.TrimSuffix(filepath.Base(path), ".json"))
		if err != nil {
			return nil, err
		}
		for _, q := range queries {
			if q.Expr, err = substitute(q.Expr, values); err != nil {
				return nil, fmt.Errorf("%s: %w", q.ID(), err)
			}
			if ids[q.ID()] {
				return nil, fmt.Errorf("%w: two queries are called %q; give them different legends", errDashboard, q.ID())
			}
			ids[q.ID()] = true
			all = append(all, q)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: %s has no dashboards", errDashboard, dir)
	}
	return all, nil
}

func (f file) queries(dashboard string) ([]Query, error) {
	var all []Query
	for _, p := range f.Panels {
		for _, t := range p.Targets {
			q := Query{Dashboard: dashboard, Panel: p.Title, Legend: t.LegendFormat, Expr: t.Expr, Instant: t.Instant, Labels: labelsOf(t.LegendFormat)}
			if p.Type == "table" {
				q.Labels = []string{"namespace"}
			}
			all = append(all, q)
		}
	}
	for _, a := range f.Annotations.List {
		all = append(all, Query{Dashboard: dashboard, Panel: "annotation " + a.Name, Legend: a.TextFormat, Expr: a.Expr, Labels: labelsOf(a.TextFormat)})
	}
	for _, v := range f.Templating.List {
		if v.Type != "query" {
			continue
		}
		match := labelValues.FindStringSubmatch(v.Query)
		if match == nil {
			return nil, fmt.Errorf("%w: variable %s of dashboard %s has the query %q, want label_values", errDashboard, v.Name, dashboard, v.Query)
		}
		// Grafana reads the values of a label of a metric; this is the same as a query.
		all = append(all, Query{
			Dashboard: dashboard, Panel: "variable " + v.Name, Labels: []string{match[2]},
			Expr: "count by (" + match[2] + ") (" + match[1] + ")",
		})
	}
	return all, nil
}

func labelsOf(legend string) []string {
	var labels []string
	for _, match := range legendLabel.FindAllStringSubmatch(legend, -1) {
		labels = append(labels, match[1])
	}
	return labels
}

// substitute replaces the variables of Grafana.
func substitute(expr string, values map[string]string) (string, error) {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	// The longest first: $name is also the beginning of $namespace.
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	for _, name := range names {
		expr = strings.ReplaceAll(expr, "$"+name, values[name])
	}
	if strings.Contains(expr, "$") {
		return "", fmt.Errorf("%w: a variable in %q has no value", errDashboard, expr)
	}
	return expr, nil
}
