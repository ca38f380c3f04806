// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fielderrors

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	etcdfuzzer "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/fuzzer"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/install"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestFind(t *testing.T) {
	t.Parallel()
	cluster := reflect.TypeFor[v1beta2.EtcdCluster]()
	for _, test := range []struct {
		name, body string
		want       []string
	}{
		{"nothing wrong", `{"spec":{"size":3,"etcd":{"quotaBackendBytes":8,"heartbeatInterval":"60m"},"pod":null}}`, nil},
		{"all at once", `{"spec":{"size":"3","vresion":"3.6.16","pod":{"labels":{"a":1}}}}`, []string{
			"spec.pod.labels.a: must be a string, not an integer; put it in quotes", "spec.size: must be an integer, not a string; remove the quotes",
			`spec.vresion: unknown field "spec.vresion" (did you mean "spec.version"?)`,
		}},
		{"a field of an embedded struct", `{"labels":{}}`, []string{`labels: unknown field "labels"`}},
		{"nothing like it", `{"spec":{"zookeeper":true}}`, []string{`spec.zookeeper: unknown field "spec.zookeeper"`}},
		{"twice", `{"spec":{"size":3,"size":5}}`, []string{`: duplicate field "spec.size"`}},
		{"list and object", `{"spec":{"pod":[],"clients":{}}}`, []string{
			"spec.clients: must be a list, not an object", "spec.pod: must be an object, not a list",
		}},
		{"a number that is too large", `{"spec":{"size":3000000000}}`, []string{"spec.size: does not fit into int32"}},
		{"a fraction", `{"spec":{"size":3.5}}`, []string{"spec.size: must be an integer, not a number"}},
		{"a long value with control characters", `{"spec":{"etcd":{"quotaBackendBytes":"` + strings.Repeat("x", 99) + `\u001b"}}}`, []string{
			`spec.etcd.quotaBackendBytes: "` + strings.Repeat("x", 63) + "... is not a quantity, for example 500m, 2 or 8Gi",
		}},
		{"no object", `[]`, []string{": must be an object, not a list"}},
		{"kind", `{"kind":3}`, []string{"kind: must be a string, not an integer; put it in quotes"}},
		{"YAML", "spec:\n  version: 3.6\n", []string{"spec.version: must be a string, not a number; put it in quotes"}},
		{"neither JSON nor YAML", "\t{", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, p := range find([]byte(test.body), cluster) {
				got = append(got, p.field+": "+p.detail)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFindsNothingInWhatDecodes: an error that is no decoder's is never replaced.
func TestFindsNothingInWhatDecodes(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := install.Install(scheme); err != nil {
		t.Fatal(err)
	}
	filler := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, etcdfuzzer.Funcs), etcdfuzzer.Source{PCG: rand.NewPCG(1, 2)}, serializer.NewCodecFactory(scheme))
	for _, object := range []runtime.Object{&v1beta2.EtcdCluster{}, &v1beta2.EtcdBackup{}, &v1beta2.EtcdRestore{}} {
		for range 50 {
			filler.Fill(object)
			body, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			if found := find(body, reflect.TypeOf(object)); len(found) > 0 {
				t.Fatalf("%T: %v", object, found)
			}
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	fields := fieldsOf(reflect.TypeFor[v1beta2.ClusterSpec]())
	for name, want := range map[string]string{
		"sise": "size", "szie": "size", "tls": "TLS", "Version": "version", "vresion": "version", "backups": "backup", "deletion": "",
		"replicas": "", strings.Repeat("version", 100): "",
	} {
		if got := nearest(name, fields); got != want {
			t.Errorf("%.20s: got %q, want %q", name, got, want)
		}
	}
}

// TestRejection: unknown fields are a reason only where the server rejects them.
func TestRejection(t *testing.T) {
	t.Parallel()
	unknown, wrong := problem{field: "a", detail: `unknown field "a"`, isStrict: true}, problem{field: "b", detail: "must be a string"}
	for _, test := range []struct {
		name      string
		problems  []problem
		directive string
		isApply   bool
		want      string
	}{
		{"none", nil, metav1.FieldValidationStrict, true, ""},
		{"unknown, strict", []problem{unknown}, metav1.FieldValidationStrict, false, `unknown field "a"`},
		{"unknown, applied", []problem{unknown}, metav1.FieldValidationIgnore, true, `unknown field "a"`},
		{"unknown, a warning", []problem{unknown}, metav1.FieldValidationWarn, false, ""},
		{"unknown beside a wrong one", []problem{unknown, wrong}, metav1.FieldValidationWarn, false, `unknown field "a"; b: must be a string`},
		{"unknown and ignored beside a wrong one", []problem{unknown, wrong}, metav1.FieldValidationIgnore, false, "b: must be a string"},
		{"many", slices.Repeat([]problem{wrong}, mostProblems+2), metav1.FieldValidationWarn, false,
			strings.Repeat("b: must be a string; ", mostProblems) + "and more"},
	} {
		got := ""
		if err := rejection(test.problems, test.directive, test.isApply); err != nil {
			got = strings.TrimPrefix(err.Error(), "the object cannot be read: ")
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// TestFindIsBounded: a body that is searched has many thousand wrong values, and the memory is that of all namespaces. One that
// is too large for an object is not searched.
func TestFindIsBounded(t *testing.T) {
	t.Parallel()
	const many = 200_000
	for name, body := range map[string]string{
		"wrong items":  `{"spec":{"etcd":{"extraArgs":[0` + strings.Repeat(",0", many) + `]}}}`,
		"wrong values": `{"spec":{"pod":{"labels":{"a":0` + numbered(`,"a%d":0`, many/10) + `}}}}`,
		"unknown keys": `{"spec":{"a":0` + numbered(`,"a%d":0`, many/10) + `}}`,
	} {
		if n := len(find([]byte(body), reflect.TypeFor[v1beta2.EtcdCluster]())); n != mostProblems+1 {
			t.Errorf("%s: %d problems are kept instead of %d", name, n, mostProblems+1)
		}
	}
	if found := find([]byte(`{"spec":{"a":"`+strings.Repeat("x", maxSearched)+`"}}`), reflect.TypeFor[v1beta2.EtcdCluster]()); found != nil {
		t.Errorf("a large body is searched: %d problems", len(found))
	}
}

func numbered(format string, n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, format, i)
	}
	return all.String()
}
