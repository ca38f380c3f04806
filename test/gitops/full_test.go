// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"encoding/json"
	"flag"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

var update = flag.Bool("update", false, "record the objects with every field for test/argocd")

// full builds manifests in which every field is set.
type full struct {
	kind       string
	api        api
	exceptions exceptions
}

// build returns a manifest. With differing, each field has a value of the page's table, if one is for its type.
func (f full) build(t *testing.T, differing bool) map[string]any {
	t.Helper()
	tree := map[string]any{
		"apiVersion": v1beta2.SchemeGroupVersion.String(), "kind": f.kind,
		"metadata": map[string]any{"name": "full", "namespace": recordedNamespace, "labels": map[string]any{"a": "b"}},
	}
	var emptied []string
	walk(f.api.spec(t, f.kind), []string{"spec"}, func(path []string, of reflect.Type) {
		name := strings.Join(path, ".")
		if slices.ContainsFunc(emptied, func(outer string) bool { return strings.HasPrefix(name, outer+".") }) {
			return
		}
		isCollection := of.Kind() == reflect.Slice || of.Kind() == reflect.Map
		inner, isStruct := structOf(of)
		if isStruct && inner.NumField() > 0 || isCollection && (!differing || of.Elem().Kind() != reflect.String) {
			return
		}
		for _, value := range valuesOf(of) {
			if _, differs := f.exceptions.of(path, of, value); differs != differing && f.canDiffer(path, of) || !f.api.has(t, f.kind, wrap(path, value)) {
				continue
			}
			if isCollection {
				emptied = append(emptied, name)
			}
			var decoded any
			if err := json.Unmarshal([]byte(value), &decoded); err != nil {
				t.Fatal(err)
			}
			put(tree, path, decoded)
			return
		}
		t.Errorf("%s %s: the test has no value for %s", f.kind, name, of)
	})
	return tree
}

// canDiffer is true if the page's table is about a value of the field.
func (f full) canDiffer(path []string, of reflect.Type) bool {
	return slices.ContainsFunc(valuesOf(of), func(value string) bool {
		_, differs := f.exceptions.of(path, of, value)
		return differs
	})
}

// put returns a tree that has a value at a path.
func put(tree any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	if path[0] == "[]" {
		list, ok := tree.([]any)
		if !ok {
			list = []any{nil}
		}
		return []any{put(list[0], path[1:], value)}
	}
	object, ok := tree.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	object[path[0]] = put(object[path[0]], path[1:], value)
	return object
}

// TestFullObjects: an object with every field reads back as its manifest, for Terraform here and for Argo CD in
// test/argocd. Written in the forms of the page's table, it differs there and nowhere else.
func TestFullObjects(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			full := full{kind, newAPI(t), readExceptions(t)}
			var pairs []Pair
			for _, differing := range []bool{false, true} {
				manifest := full.build(t, differing)
				data, err := json.Marshal(manifest)
				if err != nil {
					t.Fatal(err)
				}
				pair := Pair{Manifest: manifest, Live: full.api.readBack(t, kind, data)}
				for _, difference := range Differences(pair.Manifest, pair.Live) {
					pair.Differences = append(pair.Differences, difference.Path)
					if !differing {
						t.Error(difference)
					}
				}
				if differing && len(pair.Differences) < 20 {
					t.Errorf("only these values differ: %v", pair.Differences)
				}
				stable, err := pair.Stable(recordedNamespace)
				if err != nil {
					t.Fatal(err)
				}
				pairs = append(pairs, stable)
			}
			file := filepath.Join("..", "argocd", "testdata", "full", kind+".json")
			if err := Record(file, pairs, *update, "go test ./test/gitops -run TestFullObjects -update"); err != nil {
				t.Error(err)
			}
		})
	}
}
