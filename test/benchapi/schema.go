// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// quantityPattern is what every quantity matches; the API server rejects others at decoding.
const quantityPattern = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`

// definitionPrefix begins a reference to another definition.
const definitionPrefix = "#/definitions/"

var errSchema = errors.New("the OpenAPI definitions do not make a structural schema")

// object is a value of JSON, such as a schema.
type object = map[string]any

// structuralSchema returns the schema of a CRD for the Go type with the name. References are
// replaced by what they refer to, because a CRD has no references. It has no
// descriptions, so that the CRD needs less memory.
func structuralSchema(definitions common.GetOpenAPIDefinitions, name string) (object, error) {
	found := definitions(func(path string) spec.Ref { return spec.MustCreateRef(definitionPrefix + path) })
	e := expander{definitions: found}
	root, err := e.named(name)
	if err != nil {
		return nil, err
	}
	properties, ok := root["properties"].(object)
	if !ok {
		return nil, fmt.Errorf("%w: %s is not an object with fields", errSchema, name)
	}
	delete(properties, "apiVersion")
	delete(properties, "kind")
	// The kube-apiserver knows the schema of metadata.
	properties["metadata"] = object{"type": "object"}
	return root, nil
}

// expander replaces references.
type expander struct {
	definitions map[string]common.OpenAPIDefinition
	// within are the definitions that are being expanded.
	within []string
}

func (e *expander) named(name string) (object, error) {
	switch {
	case strings.HasSuffix(name, ".Quantity"):
		return object{"x-kubernetes-int-or-string": true, "anyOf": []any{object{"type": "integer"}, object{"type": "string"}}, "pattern": quantityPattern}, nil
	case strings.HasSuffix(name, ".IntOrString"):
		return object{"x-kubernetes-int-or-string": true, "anyOf": []any{object{"type": "integer"}, object{"type": "string"}}}, nil
	case slices.Contains(e.within, name):
		return nil, fmt.Errorf("%w: %s contains itself; write its schema by hand", errSchema, name)
	}
	definition, ok := e.definitions[name]
	if !ok {
		return nil, fmt.Errorf("%w: %s is missing; run make generate", errSchema, name)
	}
	e.within = append(e.within, name)
	defer func() { e.within = e.within[:len(e.within)-1] }()
	return e.schema(&definition.Schema)
}

func (e *expander) schema(s *spec.Schema) (object, error) {
	if ref := s.Ref.String(); ref != "" {
		expanded, err := e.named(strings.TrimPrefix(ref, definitionPrefix))
		if err == nil {
			setDefault(expanded, s.Default)
		}
		return expanded, err
	}
	// A reference with a description is the only element of allOf.
	if len(s.AllOf) == 1 {
		return e.schema(&s.AllOf[0])
	}
	out := object{}
	if len(s.Type) == 1 {
		out["type"] = s.Type[0]
	}
	if s.Format != "" {
		out["format"] = s.Format
	}
	if len(s.Enum) > 0 {
		out["enum"] = s.Enum
	}
	if len(s.Required) > 0 {
		out["required"] = toAny(s.Required)
	}
	for _, extension := range []string{"x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"} {
		if value, ok := s.Extensions[extension]; ok {
			out[extension] = value
		}
	}
	setDefault(out, s.Default)
	return out, e.children(s, out)
}

// children adds the schemas of fields, elements and values.
func (e *expander) children(s *spec.Schema, out object) error {
	if len(s.Properties) > 0 {
		properties := object{}
		for name, property := range s.Properties {
			expanded, err := e.schema(&property)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			properties[name] = expanded
		}
		out["properties"] = properties
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		expanded, err := e.schema(s.AdditionalProperties.Schema)
		if err != nil {
			return err
		}
		out["additionalProperties"] = expanded
	}
	if s.Items != nil && s.Items.Schema != nil {
		expanded, err := e.schema(s.Items.Schema)
		if err != nil {
			return err
		}
		out["items"] = expanded
		requireKeys(out, expanded)
	}
	return nil
}

// requireKeys makes the keys of a list required, as a CRD must have it.
func requireKeys(list, element object) {
	keys, _ := list["x-kubernetes-list-map-keys"].([]any)
	required, _ := element["required"].([]any)
	properties, _ := element["properties"].(object)
	for _, key := range keys {
		name, _ := key.(string)
		property, _ := properties[name].(object)
		if _, ok := property["default"]; !ok && !slices.Contains(required, key) {
			required = append(required, key)
		}
	}
	if len(required) > 0 {
		element["required"] = required
	}
}

// setDefault leaves zero values out: they say only that the Go field is not a pointer. As
// defaults of a CRD they would fill required fields that the author forgot.
func setDefault(out object, value any) {
	if value == nil {
		return
	}
	if v := reflect.ValueOf(value); v.IsZero() || v.Kind() == reflect.Map && v.Len() == 0 {
		return
	}
	out["default"] = value
}

func toAny[T any](values []T) []any {
	out := make([]any, 0, len(values))
	for _, value := range values {
		out = append(out, value)
	}
	return out
}
