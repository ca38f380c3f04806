// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// row is a row of the table of values in a README.
type row struct{ value, preset string }

var rowPattern = regexp.MustCompile("(?m)^\\| `([a-zA-Z.]+)` \\| (.*?) \\| .* \\|$")

func rows(t *testing.T, chart string) []row {
	t.Helper()
	_, text, _ := strings.Cut(read(t, "charts", chart, "README.md"), "\n## Values\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var list []row
	for _, match := range rowPattern.FindAllStringSubmatch(text, -1) {
		list = append(list, row{match[1], match[2]})
	}
	if len(list) == 0 {
		t.Fatalf("charts/%s/README.md has no table of values", chart)
	}
	return list
}

// paths returns the values in a tree that no row covers; visited gets the rows that are met.
func paths(tree map[string]any, prefix string, covers func(string) bool) []string {
	var left []string
	for name, value := range tree {
		path := prefix + name
		inner, isMap := value.(map[string]any)
		switch {
		case covers(path):
		case isMap && len(inner) > 0:
			left = append(left, paths(inner, path+".", covers)...)
		default:
			left = append(left, path)
		}
	}
	slices.Sort(left)
	return left
}

// inSchema replaces each object of a schema by its properties.
func inSchema(node map[string]any) map[string]any {
	properties := map[string]any{}
	all, _ := node["properties"].(map[string]any)
	for name, inner := range all {
		properties[name] = inSchema(inner.(map[string]any))
	}
	return properties
}

func at(tree map[string]any, path string) (any, bool) {
	var value any = tree
	for name := range strings.SplitSeq(path, ".") {
		inner, isMap := value.(map[string]any)
		if !isMap {
			return nil, false
		}
		found := false
		if value, found = inner[name]; !found {
			return nil, false
		}
	}
	return value, true
}

// TestREADME: README, values.yaml and values.schema.json have the same values and defaults.
func TestREADME(t *testing.T) {
	t.Parallel()
	for _, chart := range []string{operator, cluster} {
		values := parse(t, read(t, "charts", chart, "values.yaml"))
		schema := map[string]any{}
		must(t, json.Unmarshal([]byte(read(t, "charts", chart, "values.schema.json")), &schema), "parse the schema of %s", chart)
		properties := inSchema(schema)
		delete(properties, "global")
		var names []string
		for _, r := range rows(t, chart) {
			names = append(names, r.value)
			preset, found := at(values, r.value)
			if !found {
				t.Errorf("%s: value %s of the README is not in values.yaml", chart, r.value)
			}
			if _, found = at(properties, r.value); !found {
				t.Errorf("%s: value %s of the README is not in values.schema.json", chart, r.value)
			}
			if text, quoted := strings.CutPrefix(r.preset, "`"); quoted {
				var want any
				must(t, yaml.Unmarshal([]byte(strings.TrimSuffix(text, "`")), &want), "parse the default of %s", r.value)
				if !cmp.Equal(want, preset) {
					t.Errorf("%s: the README says that %s is %v, and it is %v", chart, r.value, want, preset)
				}
			}
		}
		covers := func(path string) bool { return slices.Contains(names, path) }
		for file, tree := range map[string]map[string]any{"values.yaml": values, "values.schema.json": properties} {
			if left := paths(tree, "", covers); len(left) > 0 {
				t.Errorf("%s: values of %s that are not in the README: %v", chart, file, left)
			}
		}
	}
}

// TestSchema: no object of a schema accepts unknown names, but those whose names users choose.
func TestSchema(t *testing.T) {
	t.Parallel()
	for _, chart := range []string{operator, cluster} {
		schema := map[string]any{}
		must(t, json.Unmarshal([]byte(read(t, "charts", chart, "values.schema.json")), &schema), "parse the schema of %s", chart)
		walk(t, chart, schema)
	}
}

func walk(t *testing.T, path string, node map[string]any) {
	t.Helper()
	properties, _ := node["properties"].(map[string]any)
	if len(properties) > 0 && node["additionalProperties"] != false {
		t.Errorf("%s accepts unknown names", path)
	}
	if node["type"] == nil {
		t.Errorf("%s has no type", path)
	}
	for name, inner := range properties {
		walk(t, path+"."+name, inner.(map[string]any))
	}
}
