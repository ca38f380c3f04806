// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestSchemaHasEveryField compares the schema with the Go types, so that a new field is compared,
// too.
func TestSchemaHasEveryField(t *testing.T) {
	t.Parallel()
	schema, err := crdSchema()
	if err != nil {
		t.Fatal(err)
	}
	for path, goType := range map[string]reflect.Type{
		"spec":                      reflect.TypeFor[v1beta2.ClusterSpec](),
		"spec.pod":                  reflect.TypeFor[v1beta2.PodPolicy](),
		"spec.etcd":                 reflect.TypeFor[v1beta2.EtcdOptions](),
		"spec.recovery":             reflect.TypeFor[v1beta2.RecoveryPolicy](),
		"status":                    reflect.TypeFor[v1beta2.ClusterStatus](),
		"status.memberStatuses.[]":  reflect.TypeFor[v1beta2.MemberStatus](),
		"status.conditions.[]":      reflect.TypeFor[v1beta2.ClusterCondition](),
		"status.memberStatuses.[].": nil,
	} {
		if goType == nil {
			if _, err := schemaAt(schema, path); !errors.Is(err, errSchema) {
				t.Errorf("a path to nothing has the error %v", err)
			}
			continue
		}
		at, err := schemaAt(schema, path)
		if err != nil {
			t.Error(err)
			continue
		}
		properties, _ := at["properties"].(object)
		if got, want := slices.Sorted(maps.Keys(properties)), fieldsOf(goType); !slices.Equal(got, want) {
			t.Errorf("%s has the fields %v, want %v", path, got, want)
		}
	}
}

func fieldsOf(goType reflect.Type) []string {
	var names []string
	for field := range goType.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestSchemaKeywords(t *testing.T) {
	t.Parallel()
	schema, err := crdSchema()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		path, keyword string
		value         any
	}{
		{"spec.podDisruptionBudget", "default", "Enabled"},
		{"spec.etcd.quotaBackendBytes", "x-kubernetes-int-or-string", true},
		{"status.conditions", "x-kubernetes-list-type", "map"},
		{"metadata", "type", "object"},
		{"metadata", "properties", nil},
		{"spec.pod.resources", "default", nil},
	} {
		at, err := schemaAt(schema, want.path)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := at[want.keyword]; !reflect.DeepEqual(got, want.value) {
			t.Errorf("%s of %s is %v, want %v", want.keyword, want.path, got, want.value)
		}
	}
	encoded, err := json.Marshal(schema)
	if err != nil || strings.Contains(string(encoded), `"$ref"`) || strings.Contains(string(encoded), `"description"`) {
		t.Errorf("the schema has references or descriptions (%v)", err)
	}
}

func TestSchemaOfRecursiveTypeIsAnError(t *testing.T) {
	t.Parallel()
	definitions := func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		node := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{
			"next": {SchemaProps: spec.SchemaProps{Ref: ref("node")}},
		}}}
		return map[string]common.OpenAPIDefinition{"node": {Schema: node}}
	}
	for _, name := range []string{"node", "absent"} {
		if _, err := structuralSchema(definitions, name); !errors.Is(err, errSchema) {
			t.Errorf("%s has the error %v", name, err)
		}
	}
}

func TestManifestHasSubresources(t *testing.T) {
	t.Parallel()
	manifest, err := crdManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"specReplicasPath":".spec.size"`, `"status":{}`, `"group":"etcd.bench.example.com"`} {
		if !strings.Contains(string(manifest), part) {
			t.Errorf("the manifest lacks %s", part)
		}
	}
}
