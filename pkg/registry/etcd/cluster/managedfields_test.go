// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/install"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/generated/openapi"
)

// TestManagedFieldsOfMembers: an object whose managed fields name each member, as an earlier release
// stored them, has managed fields without names after the next status. Names would make the managed
// fields of all clusters differ.
func TestManagedFieldsOfMembers(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := install.Install(scheme); err != nil {
		t.Fatal(err)
	}
	schemas := map[string]*spec.Schema{}
	for name, definition := range openapi.GetOpenAPIDefinitions(func(path string) spec.Ref {
		return spec.MustCreateRef("#/definitions/" + path)
	}) {
		schema := definition.Schema
		if v2, ok := schema.Extensions[common.ExtensionV2Schema].(spec.Schema); ok {
			schema = v2
		}
		schemas[name] = &schema
	}
	kind := v1beta2.SchemeGroupVersion.WithKind("EtcdCluster")
	named := schemas[v1beta2.EtcdCluster{}.OpenAPIModelName()]
	named.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{"group": kind.Group, "version": kind.Version, "kind": kind.Kind}})
	types, err := managedfields.NewTypeConverter(schemas, false)
	if err != nil {
		t.Fatal(err)
	}
	manager, err := managedfields.NewDefaultFieldManager(types, scheme, scheme, scheme, kind, v1beta2.SchemeGroupVersion, "status", nil)
	if err != nil {
		t.Fatal(err)
	}
	const old = `{"f:status":{"f:memberStatuses":{".":{},"k:{\"name\":\"c-0\"}":{".":{},"f:name":{},"f:version":{}}}}}`
	live := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", ManagedFields: []metav1.ManagedFieldsEntry{{
		Manager: "etcd-operator-controller", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: v1beta2.SchemeGroupVersion.String(),
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(old), Subresource: "status",
	}}}}
	live.SetGroupVersionKind(kind)
	live.Status.MemberStatuses = []v1beta2.MemberStatus{{Name: "c-0", Version: "3.6.10"}}
	changed := live.DeepCopy()
	changed.Status.MemberStatuses[0].Version = "3.6.11"
	updated, err := manager.Update(live, changed, "etcd-operator-controller")
	if err != nil {
		t.Fatal(err)
	}
	entries := updated.(*v1beta2.EtcdCluster).ManagedFields
	if len(entries) != 1 {
		t.Fatalf("managed fields %v, want one entry", entries)
	}
	if got := entries[0].FieldsV1.GetRawString(); !strings.Contains(got, `"f:memberStatuses":{}`) || strings.Contains(got, "c-0") {
		t.Errorf("managed fields %s, want memberStatuses as one value", got)
	}
}
