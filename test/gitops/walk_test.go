// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/install"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// mapKey is the key of the only item of a map.
const mapKey = "aKey"

// kinds are those that a manifest may hold.
var kinds = []string{"EtcdCluster", "EtcdBackup", "EtcdRestore"}

// api stores and reads objects as the API server does, without validation: no valid object has every field.
type api struct {
	scheme *runtime.Scheme
	codec  runtime.Codec
}

func newAPI(t *testing.T) api {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := install.Install(scheme); err != nil {
		t.Fatal(err)
	}
	codecs := serializer.NewCodecFactory(scheme)
	protobuf, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	return api{scheme, codecs.CodecForVersions(protobuf.Serializer, protobuf.Serializer, v1beta2.SchemeGroupVersion, v1beta2.SchemeGroupVersion)}
}

func (a api) new(t *testing.T, kind string) runtime.Object {
	t.Helper()
	object, err := a.scheme.New(v1beta2.SchemeGroupVersion.WithKind(kind))
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// spec returns the type of the spec of a kind.
func (a api) spec(t *testing.T, kind string) reflect.Type {
	t.Helper()
	spec, _ := reflect.TypeOf(a.new(t, kind)).Elem().FieldByName("Spec")
	return spec.Type
}

// has is true if the object of a kind can be decoded from JSON.
func (a api) has(t *testing.T, kind, manifest string) bool {
	t.Helper()
	return json.Unmarshal([]byte(manifest), a.new(t, kind)) == nil
}

// readBack returns what a client reads after it created an object of a manifest.
func (a api) readBack(t *testing.T, kind string, manifest []byte) map[string]any {
	t.Helper()
	object := a.new(t, kind)
	if err := json.Unmarshal(manifest, object); err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	a.scheme.Default(object)
	stored, err := runtime.Encode(a.codec, object)
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	if object, err = runtime.Decode(a.codec, stored); err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, data)
}

func decoded(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// templateMetadata are the fields of metadata that a new cluster gets from an EtcdRestore.
var templateMetadata = []string{"labels", "annotations"}

// walk visits the fields of a struct: those that hold a value, and the lists, maps and optional structs that hold others.
// "[]" is an item of a list, mapKey one of a map.
func walk(of reflect.Type, path []string, visit func(path []string, of reflect.Type)) {
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			walk(field.Type, path, visit)
			continue
		}
		if of == reflect.TypeFor[metav1.ObjectMeta]() && !slices.Contains(templateMetadata, name) {
			continue
		}
		next, inner := append(slices.Clone(path), name), field.Type
		for inner.Kind() == reflect.Slice || inner.Kind() == reflect.Map {
			visit(next, inner)
			next = append(slices.Clone(next), map[bool]string{true: "[]", false: mapKey}[inner.Kind() == reflect.Slice])
			inner = inner.Elem()
		}
		visit(next, inner)
		if leaf, isStruct := structOf(inner); isStruct {
			walk(leaf, next, visit)
		}
	}
}

// structOf returns the type that a field holds, and whether that has fields of its own.
func structOf(of reflect.Type) (reflect.Type, bool) {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	_, decodes := reflect.New(of).Interface().(json.Unmarshaler)
	return of, of.Kind() == reflect.Struct && !decodes
}
