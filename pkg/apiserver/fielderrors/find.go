// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fielderrors

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// problem is one field that a decoder rejects.
type problem struct {
	field, detail string
	// isStrict is true if only a strict decoder rejects the field.
	isStrict bool
}

// maxSearched is how large a body is searched, in bytes. The tree of a body takes some fifty times its size. Objects with
// more than half of it in their metadata and spec are rejected anyway.
const maxSearched = 512 << 10

// find compares a body, in JSON or YAML, with the type that it is decoded into. It returns nothing if
// the body is neither, or larger than maxSearched.
func find(body []byte, into reflect.Type) []problem {
	if len(body) > maxSearched {
		return nil
	}
	var tree any
	duplicates, err := kjson.UnmarshalStrict(body, &tree)
	if err != nil {
		converted, err := yaml.YAMLToJSON(body)
		if err != nil || kjson.UnmarshalCaseSensitivePreserveInts(converted, &tree) != nil {
			return nil
		}
	}
	found := &finder{}
	for _, duplicate := range duplicates {
		found.note(problem{detail: duplicate.Error(), isStrict: true})
	}
	found.value("", tree, into)
	return found.problems
}

// finder keeps one problem of each kind more than a response names: a body of the size that is read may have a million,
// and the memory is that of all namespaces.
type finder struct {
	problems        []problem
	strict, invalid int
}

// note keeps a problem if the response may name it, or says by it that there are more.
func (f *finder) note(p problem) {
	n := &f.invalid
	if p.isStrict {
		n = &f.strict
	}
	if *n++; *n <= mostProblems+1 {
		f.problems = append(f.problems, p)
	}
}

func (f *finder) add(path, format string, args ...any) {
	f.note(problem{field: path, detail: fmt.Sprintf(format, args...)})
}

// isFull is true once nothing that is found further would be kept.
func (f *finder) isFull() bool { return f.invalid > mostProblems }

// value compares a value with a type. Null fits every type.
func (f *finder) value(path string, value any, into reflect.Type) {
	for into.Kind() == reflect.Pointer {
		into = into.Elem()
	}
	if value == nil {
		return
	}
	if _, ok := reflect.New(into).Interface().(json.Unmarshaler); ok {
		f.unmarshaled(path, value, into)
		return
	}
	switch into.Kind() { //nolint:exhaustive // the decoder judges the others as a whole
	case reflect.Struct:
		if object, ok := value.(map[string]any); ok {
			f.object(path, object, fieldsOf(into))
			return
		}
	case reflect.Map:
		if object, ok := value.(map[string]any); ok {
			for _, key := range slices.Sorted(maps.Keys(object)) {
				if f.isFull() {
					return
				}
				f.value(join(path, key), object[key], into.Elem())
			}
			return
		}
	case reflect.Slice:
		if list, ok := value.([]any); ok {
			for i, item := range list {
				if f.isFull() {
					return
				}
				f.value(fmt.Sprintf("%s[%d]", path, i), item, into.Elem())
			}
			return
		}
	case reflect.Interface:
		return
	}
	f.scalar(path, value, into)
}

// object compares the keys of an object with the fields of a struct. Keys that begin with $ are
// directives of a strategic merge patch.
func (f *finder) object(path string, object map[string]any, fields map[string]reflect.Type) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		at := join(path, key)
		switch known := fields[key]; {
		case known != nil:
			f.value(at, object[key], known)
		case !strings.HasPrefix(key, "$"):
			if f.strict > mostProblems {
				continue
			}
			f.note(problem{field: at, detail: fmt.Sprintf("unknown field %q", at) + f.suggestion(path, key, fields), isStrict: true})
		}
	}
}

// suggestion names the field that is most like a key, if one is.
func (f *finder) suggestion(path, key string, fields map[string]reflect.Type) string {
	near := nearest(key, fields)
	if near == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", join(path, near))
}

// scalar compares a value with a type by decoding it. The detail has no value: it may be secret.
func (f *finder) scalar(path string, value any, into reflect.Type) {
	data, err := json.Marshal(value)
	if err != nil || kjson.UnmarshalCaseSensitivePreserveInts(data, reflect.New(into).Interface()) == nil {
		return
	}
	text, isText := value.(string)
	desired, remedy := kindOf(into), ""
	switch {
	case desired == kindText && isScalar(value):
		remedy = "; put it in quotes"
	case isText && kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), reflect.New(into).Interface()) == nil:
		remedy = "; remove the quotes"
	}
	if got := kindOf(reflect.TypeOf(value)); got != desired {
		f.add(path, "must be %s, not %s%s", desired, got, remedy)
		return
	}
	f.add(path, "does not fit into %s", into.Kind())
}

// examples are values of types that decode themselves.
var examples = map[reflect.Type]string{
	reflect.TypeFor[v1beta2.Duration]():  "a duration in h, m and s, for example 720h or 1h30m",
	reflect.TypeFor[resource.Quantity](): "a quantity, for example 500m, 2 or 8Gi",
	reflect.TypeFor[metav1.Time]():       "a time, for example 2026-01-31T15:04:05Z",
	reflect.TypeFor[metav1.MicroTime]():  "a time, for example 2026-01-31T15:04:05.000000Z",
}

// unmarshaled lets a type that decodes itself decode the value.
func (f *finder) unmarshaled(path string, value any, into reflect.Type) {
	data, err := json.Marshal(value)
	if err != nil {
		return
	}
	err = json.Unmarshal(data, reflect.New(into).Interface())
	switch example := examples[into]; {
	case err == nil:
	case example != "":
		f.add(path, "%s is not %s", shortened(string(data)), example)
	default:
		f.add(path, "%s", shortened(err.Error()))
	}
}

// fieldsOf returns the types of the fields of a struct by their names in JSON, with those of structs that
// are inline.
func fieldsOf(of reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case name != "":
			fields[name] = field.Type
		case field.Anonymous:
			maps.Copy(fields, fieldsOf(field.Type))
		}
	}
	return fields
}

const kindText = "a string"

// kindOf returns what users call a kind of values.
func kindOf(of reflect.Type) string {
	switch of.Kind() {
	case reflect.String:
		return kindText
	case reflect.Bool:
		return "true or false"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			return "a string in base64"
		}
		return "a list"
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return "an integer"
	}
}

func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// longestValue is how much of a value an error shows.
const longestValue = 64

func shortened(text string) string {
	if runes := []rune(text); len(runes) > longestValue {
		return string(runes[:longestValue]) + "..."
	}
	return text
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
