// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// specCase is a spec as a user writes it, and the errors that it must give: their
// type and field, in any order.
type specCase struct {
	name string
	spec string
	want []string
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: "default", ResourceVersion: "1"}
}

func parse(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
}

// cluster has three members unless its spec says otherwise.
func cluster(t *testing.T, spec string) *v1beta2.EtcdCluster {
	t.Helper()
	three := int32(3)
	c := &v1beta2.EtcdCluster{ObjectMeta: meta("example"), Spec: v1beta2.ClusterSpec{Replicas: &three, Version: "3.6.8"}}
	parse(t, spec, &c.Spec)
	v1beta2.SetObjectDefaults_EtcdCluster(c)
	return c
}

func backup(t *testing.T, spec string) *v1beta2.EtcdBackup {
	t.Helper()
	b := &v1beta2.EtcdBackup{ObjectMeta: meta("example")}
	parse(t, spec, &b.Spec)
	v1beta2.SetObjectDefaults_EtcdBackup(b)
	return b
}

func restore(t *testing.T, spec string) *v1beta2.EtcdRestore {
	t.Helper()
	r := &v1beta2.EtcdRestore{ObjectMeta: meta("example")}
	parse(t, spec, &r.Spec)
	v1beta2.SetObjectDefaults_EtcdRestore(r)
	return r
}

func short(errs field.ErrorList) []string {
	var got []string
	for _, err := range errs {
		got = append(got, fmt.Sprintf("%s %s", strings.TrimPrefix(string(err.Type), "FieldValue"), err.Field))
	}
	slices.Sort(got)
	return got
}

func expect(t *testing.T, errs field.ErrorList, want ...string) {
	t.Helper()
	want = slices.Clone(want)
	slices.Sort(want)
	if diff := cmp.Diff(want, short(errs)); diff != "" {
		t.Errorf("wrong errors (-want +got):\n%s\n%v", diff, errs.ToAggregate())
	}
}

func runClusterCases(t *testing.T, cases []specCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			expect(t, ValidateEtcdCluster(cluster(t, c.spec)), c.want...)
		})
	}
}
