// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"reflect"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// find returns the needs of all fields of a value that name a Secret or a ServiceAccount. It
// recognizes these fields by their names, so that it also finds fields that the API gets later.
func find(path *field.Path, value any) []Need {
	return walk(path, reflect.ValueOf(value))
}

func walk(path *field.Path, value reflect.Value) []Need {
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		if value.IsNil() {
			return nil
		}
		return walk(path, value.Elem())
	case reflect.Slice, reflect.Array:
		var needs []Need
		for i := range value.Len() {
			needs = append(needs, walk(path.Index(i), value.Index(i))...)
		}
		return needs
	case reflect.Map:
		var needs []Need
		for entries := value.MapRange(); entries.Next(); {
			needs = append(needs, walk(path.Key(entries.Key().String()), entries.Value())...)
		}
		return needs
	case reflect.Struct:
		return walkStruct(path, value)
	default:
		return nil
	}
}

func walkStruct(path *field.Path, value reflect.Value) []Need {
	switch typed := value.Interface().(type) {
	case corev1.ConfigMapKeySelector:
		return nil
	case corev1.SecretKeySelector:
		return named(path.Child("name"), typed.Name)
	case corev1.LocalObjectReference:
		return named(path.Child("name"), typed.Name)
	}
	var needs []Need
	for i := range value.NumField() {
		structField := value.Type().Field(i)
		if !structField.IsExported() {
			continue
		}
		name, inline := jsonName(structField)
		at, content := path, value.Field(i)
		if !inline {
			at = path.Child(name)
		}
		switch {
		case content.Kind() == reflect.String && strings.HasSuffix(strings.ToLower(name), "secret"):
			needs = append(needs, named(at, content.String())...)
		case content.Kind() == reflect.String && name == "serviceAccountName":
			if content.String() != "" {
				needs = append(needs, accountNeed(at, content.String()))
			}
		default:
			needs = append(needs, walk(at, content)...)
		}
	}
	return needs
}

func named(path *field.Path, secret string) []Need {
	if secret == "" {
		return nil
	}
	return []Need{secretNeed(path, secret)}
}

// jsonName returns the JSON name of a field. Inline is true for an embedded struct, whose fields
// are fields of the outer struct in JSON.
func jsonName(structField reflect.StructField) (name string, inline bool) {
	name, _, _ = strings.Cut(structField.Tag.Get("json"), ",")
	return name, structField.Anonymous && name == ""
}

var index = regexp.MustCompile(`\[\d+\]`)

// withoutIndex removes list indexes, so that the position of an entry does not matter.
func withoutIndex(path string) string { return index.ReplaceAllString(path, "[]") }
