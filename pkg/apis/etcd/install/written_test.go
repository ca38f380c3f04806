// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// value is what a user may write into a field, and what reads back; "" for the same.
type value struct{ written, read string }

const absent = "absent"

// valuesOf returns values of a type, in JSON. Kubernetes reads quantities, durations and times back in one form, of
// several that mean the same. A client that compares texts has to write that form: see docs/how-to/gitops.md. Empty
// texts, lists and maps mean the same as absent ones, so they are left out.
func valuesOf(of reflect.Type, path string) []value {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	} else if zero := zeroIsAbsent[path[strings.LastIndex(path, ".")+1:]]; zero {
		return []value{{"true", ""}, {"false", absent}, {"7", ""}, {"0", absent}}
	}
	switch of {
	case reflect.TypeFor[resource.Quantity]():
		return []value{{`"2"`, ""}, {`"500m"`, ""}, {`"8Gi"`, ""}, {`"1e3"`, ""}, {`"1000m"`, `"1"`}, {`"0.5Gi"`, `"512Mi"`}, {`"1024Mi"`, `"1Gi"`}, {`2`, `"2"`}}
	case reflect.TypeFor[v1beta2.Duration]():
		return []value{{`"1h0m0s"`, ""}, {`"1.5s"`, ""}, {`"720h0m0s"`, ""}, {`"60m"`, ""}, {`"720h"`, ""}, {`"0s"`, ""}, {`"0"`, ""}}
	case reflect.TypeFor[metav1.Time]():
		return []value{{`"2026-01-31T15:04:05Z"`, ""}, {`"2026-01-31T16:04:05+01:00"`, `"2026-01-31T15:04:05Z"`}}
	}
	switch of.Kind() { //nolint:exhaustive // of other kinds there is nothing to write
	case reflect.Bool:
		return []value{{"true", ""}, {"false", ""}}
	case reflect.Int32, reflect.Int64:
		return []value{{"7", ""}, {"0", ""}}
	case reflect.String:
		return []value{{`"text"`, ""}}
	}
	return nil
}

// zeroIsAbsent are fields whose false or 0 reads back as absent. Their Go types cannot tell the two apart; to write the
// zero always would change hashes of what is carried out once, or of pods.
var zeroIsAbsent = map[string]bool{
	"antiAffinity": true, "insecureSkipTLSVerify": true, "nodePort": true, "timeoutInSecond": true, "backupIntervalInSecond": true,
	"DNSTimeoutInSecond": true, "generation": true,
}

// TestReadsAsWritten: what was stored reads back as it was written, field by field. A tool that compares a manifest with the
// object reports a difference for ever otherwise.
func TestReadsAsWritten(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := Install(scheme); err != nil {
		t.Fatal(err)
	}
	codecs := serializer.NewCodecFactory(scheme)
	protobuf, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	stored := codecs.CodecForVersions(protobuf.Serializer, protobuf.Serializer, v1beta2.SchemeGroupVersion, v1beta2.SchemeGroupVersion)
	count := 0
	for _, kind := range []string{"EtcdCluster", "EtcdBackup", "EtcdRestore"} {
		object, err := scheme.New(v1beta2.SchemeGroupVersion.WithKind(kind))
		if err != nil {
			t.Fatal(err)
		}
		spec, _ := reflect.TypeOf(object).Elem().FieldByName("Spec")
		walk(spec.Type, []string{"spec"}, func(path []string, of reflect.Type) {
			for _, v := range valuesOf(of, strings.Join(path, ".")) {
				in := object.DeepCopyObject()
				if err := json.Unmarshal([]byte(wrap(path, v.written)), in); err != nil {
					continue // the field has no such type
				}
				scheme.Default(in)
				data, err := runtime.Encode(stored, in)
				if err != nil {
					t.Fatalf("%s %v: %v", kind, path, err)
				}
				out, err := runtime.Decode(stored, data)
				if err != nil {
					t.Fatalf("%s %v: %v", kind, path, err)
				}
				if count++; at(t, out, path) != cmp.Or(v.read, v.written) {
					t.Errorf("%s %s: %s reads back as %s", kind, strings.Join(path, "."), v.written, at(t, out, path))
				}
			}
		})
	}
	if count < 1000 {
		t.Errorf("%d values were tried: the walk misses fields", count)
	}
}

// wrap returns an object that has a value at a path, in JSON.
func wrap(path []string, value string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == "[]" {
			value = "[" + value + "]"
		} else {
			value = fmt.Sprintf("{%q:%s}", path[i], value)
		}
	}
	return value
}

// at returns the value of an object at a path, in JSON.
func at(t *testing.T, object runtime.Object, path []string) string {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	for _, key := range path {
		switch typed := tree.(type) {
		case map[string]any:
			var found bool
			if tree, found = typed[key]; !found {
				return absent
			}
		case []any:
			if len(typed) != 1 {
				return absent
			}
			tree = typed[0]
		default:
			return absent
		}
	}
	got, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

// walk visits the fields of a struct that have no fields of their own. "[]" is an item of a list, "key" one of a map.
func walk(of reflect.Type, path []string, visit func(path []string, of reflect.Type)) {
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			walk(field.Type, path, visit)
			continue
		}
		next, inner := append(slices.Clone(path), name), field.Type
		for inner.Kind() == reflect.Slice || inner.Kind() == reflect.Map {
			next = append(next, map[bool]string{true: "[]", false: "key"}[inner.Kind() == reflect.Slice])
			inner = inner.Elem()
		}
		leaf := inner
		if leaf.Kind() == reflect.Pointer {
			leaf = leaf.Elem()
		}
		if _, decodes := reflect.New(leaf).Interface().(json.Unmarshaler); decodes || leaf.Kind() != reflect.Struct {
			visit(next, inner)
			continue
		}
		walk(leaf, next, visit)
	}
}
