// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/generated/openapi"
)

const (
	definitions = "#/$defs/"
	extension   = "x-kubernetes-"
)

// object is a part of a schema, as JSON has it.
type object = map[string]any

// schemas are the definitions of the API by name.
type schemas map[string]object

// load reads the generated definitions.
func load() (schemas, error) {
	all := schemas{}
	for path, d := range openapi.GetOpenAPIDefinitions(func(path string) spec.Ref { return spec.MustCreateRef(definitions + nameOf(path)) }) {
		raw, err := json.Marshal(d.Schema)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", path, err)
		}
		schema := object{}
		if err := json.Unmarshal(raw, &schema); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		dropZeroDefaults(schema)
		all[nameOf(path)] = schema
	}
	return all, nil
}

// dropZeroDefaults removes the defaults that only say what the zero value of a Go type is. Many are no value that is allowed.
func dropZeroDefaults(schema any) {
	switch s := schema.(type) {
	case object:
		empty, isObject := s["default"].(object)
		if value := s["default"]; value == "" || value == false || value == float64(0) || isObject && len(empty) == 0 {
			delete(s, "default")
		}
		for _, part := range s {
			dropZeroDefaults(part)
		}
	case []any:
		for _, part := range s {
			dropZeroDefaults(part)
		}
	}
}

// nameOf is the name of a type without slashes, which a reference would have to escape.
func nameOf(path string) string { return strings.ReplaceAll(path, "/", ".") }

// standalone is the JSON schema of a kind with everything that it refers to. Unknown fields are errors.
func (all schemas) standalone(kind string) object {
	root := all.kind(kind)
	used := schemas{}
	all.collect(root, used)
	defs := object{}
	for name, schema := range used {
		defs[name] = strict(schema)
	}
	schema, _ := strict(root).(object)
	properties, _ := schema["properties"].(object)
	properties["apiVersion"] = object{"const": v1beta2.SchemeGroupVersion.String()}
	properties["kind"] = object{"const": kind}
	schema["required"] = []string{"apiVersion", "kind", "metadata", "spec"}
	schema["$schema"], schema["title"], schema["$defs"] = dialect, kind, defs
	return schema
}

// kind returns a copy of the schema of a kind.
func (all schemas) kind(kind string) object {
	for name, schema := range all {
		if strings.HasSuffix(name, "."+v1beta2.SchemeGroupVersion.Version+"."+kind) {
			return maps.Clone(schema)
		}
	}
	return object{}
}

// collect notes each definition that a schema refers to.
func (all schemas) collect(schema any, used schemas) {
	switch s := schema.(type) {
	case object:
		if name, refers := refersTo(s); refers && used[name] == nil {
			used[name] = all[name]
			all.collect(all[name], used)
		}
		for _, part := range s {
			all.collect(part, used)
		}
	case []any:
		for _, part := range s {
			all.collect(part, used)
		}
	}
}

func refersTo(s object) (string, bool) {
	ref, _ := s["$ref"].(string)
	return strings.CutPrefix(ref, definitions)
}

// strict returns a copy that rejects unknown fields and knows nothing of Kubernetes.
func strict(schema any) any {
	switch s := schema.(type) {
	case object:
		out := object{}
		for key, part := range s {
			if !strings.HasPrefix(key, extension) {
				out[key] = strict(part)
			}
		}
		if s["format"] == "int-or-string" {
			delete(out, "type")
			delete(out, "format")
			out["anyOf"] = []any{object{"type": "integer"}, object{"type": "string"}}
		}
		if _, is := s["properties"].(object); is && s["type"] == "object" {
			out["additionalProperties"] = false
		}
		return out
	case []any:
		out := make([]any, len(s))
		for i := range s {
			out[i] = strict(s[i])
		}
		return out
	default:
		return schema
	}
}

// definition is a kind in the shape of a custom resource definition, without the scope that Kubernetes requires.
func (all schemas) definition(kind, plural string) object {
	schema := all.kind(kind)
	properties, _ := schema["properties"].(object)
	properties = maps.Clone(properties)
	properties["metadata"] = object{"type": "object"}
	schema["properties"] = properties
	group, version := v1beta2.SchemeGroupVersion.Group, v1beta2.SchemeGroupVersion.Version
	return object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": plural + "." + group},
		"spec": object{
			"group": group,
			"names": object{"kind": kind, "listKind": kind + "List", "plural": plural, "singular": strings.ToLower(kind)},
			"versions": []any{object{
				"name": version, "served": true, "storage": true, "subresources": object{"status": object{}},
				"schema": object{"openAPIV3Schema": all.inlined(schema)},
			}},
		},
	}
}

// structural are the extensions that a custom resource definition may have.
var structural = sets.New("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type")

// inlined returns a copy with each definition in the place of the reference to it.
func (all schemas) inlined(schema any) any {
	switch s := schema.(type) {
	case object:
		if _, quantity := s["oneOf"]; quantity || s["format"] == "int-or-string" {
			return object{"x-kubernetes-int-or-string": true}
		}
		out := object{}
		if name, refers := refersTo(s); refers {
			out, _ = all.inlined(all[name]).(object)
		}
		for key, part := range s {
			if key != "$ref" && (!strings.HasPrefix(key, extension) || structural.Has(key)) {
				out[key] = all.inlined(part)
			}
		}
		if all, is := out["allOf"].([]any); is && len(all) == 1 { // a reference with a description
			if only, is := all[0].(object); is {
				delete(out, "allOf")
				for key, part := range only {
					if _, has := out[key]; !has {
						out[key] = part
					}
				}
			}
		}
		return out
	case []any:
		out := make([]any, len(s))
		for i := range s {
			out[i] = all.inlined(s[i])
		}
		return out
	default:
		return schema
	}
}
