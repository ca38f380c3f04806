// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Forms of values in JSON.
const (
	emptyText = `""`
	emptyList = `[]`
	emptyMap  = `{}`
)

// valuesOf returns what a user may write into a field of a type, in JSON.
func valuesOf(of reflect.Type) []string {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch of {
	case reflect.TypeFor[resource.Quantity]():
		return []string{`"2"`, `"500m"`, `"8Gi"`, `"1e3"`, `"1000m"`, `"0.5Gi"`, `"1024Mi"`, `2`}
	case reflect.TypeFor[v1beta2.Duration]():
		return []string{`"1h0m0s"`, `"1.5s"`, `"720h0m0s"`, `"60m"`, `"720h"`, `"0s"`, `"0"`}
	}
	switch of.Kind() { //nolint:exhaustive // of other kinds there is nothing to write
	case reflect.Bool:
		return []string{"true", "false"}
	case reflect.Int32, reflect.Int64:
		return []string{"7", "0"}
	case reflect.String:
		return []string{`"text"`, emptyText}
	case reflect.Slice:
		return []string{emptyList}
	case reflect.Map, reflect.Struct:
		return []string{emptyMap}
	}
	return nil
}

// TestReadsAsWritten: what was stored reads back as it was written, field by field, but for the values of the table in
// docs/how-to/gitops.md. Otherwise a tool that compares a manifest with the object reports a difference for ever.
func TestReadsAsWritten(t *testing.T) {
	t.Parallel()
	api, exceptions := newAPI(t), readExceptions(t)
	count, met := 0, map[string]bool{}
	for _, kind := range kinds {
		walk(api.spec(t, kind), []string{"spec"}, func(path []string, of reflect.Type) {
			for _, value := range valuesOf(of) {
				manifest := wrap(path, value)
				if !api.has(t, kind, manifest) {
					continue // the field has no such type
				}
				count++
				read := value
				if found := Differences(decoded(t, []byte(manifest)), api.readBack(t, kind, []byte(manifest))); len(found) > 0 {
					read = found[0].Read
				}
				if exception, ok := exceptions.of(path, of, value); ok {
					met[exception.key] = met[exception.key] || exception.allows(value, read)
					if exception.allows(value, read) || !exception.always && read == value {
						continue
					}
				} else if read == value {
					continue
				}
				t.Errorf("%s %s: %s reads back as %s", kind, strings.Join(path, "."), value, read)
			}
		})
	}
	if count < 1500 {
		t.Errorf("%d values were tried: the walk misses fields", count)
	}
	for _, key := range exceptions.keys() {
		if !met[key] {
			t.Errorf("%s names %s, which reads back as written", page, key)
		}
	}
}

// wrap returns an object that has a value at a path, in JSON.
func wrap(path []string, value string) string {
	for _, key := range slices.Backward(path) {
		if key == "[]" {
			value = "[" + value + "]"
		} else {
			value = fmt.Sprintf("{%q:%s}", key, value)
		}
	}
	return value
}
