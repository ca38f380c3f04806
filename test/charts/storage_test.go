// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"fmt"
	"strings"
	"testing"

	helm3 "helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	engine3 "helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
)

// installed is a Kubernetes cluster with objects in namespaces.
type installed struct{ client dynamic.Interface }

func (i installed) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	gvr, _ := meta(schema.FromAPIVersionAndKind(apiVersion, kind))
	return i.client.Resource(gvr), kind != "CustomResourceDefinition", nil
}

// withInstalled has the objects of a rendered release whose keys are named.
func withInstalled(list objects, keys ...string) installed {
	gvr, definitions := meta(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	found := make([]runtime.Object, 0, len(keys))
	for _, key := range keys {
		object := list[key]
		found = append(found, &object)
	}
	return installed{fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{gvr: definitions}, found...)}
}

// pvcOf adds the PVC of a member of the storage, which the StatefulSet creates.
func pvcOf(list objects, name string) string {
	object := unstructured.Unstructured{}
	object.SetAPIVersion("v1")
	object.SetKind("PersistentVolumeClaim")
	object.SetNamespace(namespace)
	object.SetName(name)
	key := "PersistentVolumeClaim/" + namespace + "/" + name
	list[key] = object
	return key
}

// helm3Error renders a release with Helm 3.
func (r release) helm3Error(t *testing.T, cluster engine3.ClientProvider) error {
	t.Helper()
	c, err := helm3.LoadDir(chartDir(r.chart))
	must(t, err, "load chart %s with Helm 3", r.chart)
	options := chartutil.ReleaseOptions{Name: r.name, Namespace: r.namespace, IsUpgrade: true, Revision: 2}
	values, err := chartutil.ToRenderValues(c, parse(t, r.values), options, nil)
	must(t, err, "check the values of chart %s with Helm 3", r.chart)
	_, err = engine3.RenderWithClientProvider(c, values, cluster)
	return err
}

// TestOtherStorage: the chart is rejected if its API servers would not find the objects that earlier
// ones have stored, and the message names the way out.
func TestOtherStorage(t *testing.T) {
	t.Parallel()
	const embedded = "{}"
	keyOf := func(name string) string { return "PersistentVolumeClaim/" + namespace + "/" + name }
	const data, member = "etcd-operator-apiserver-data", "data-etcd-operator-storage-0"
	for name, test := range map[string]struct {
		installed string   // values of the installation
		left      []string // keys of its objects that exist
		values    string
		want      []string // empty: accepted
	}{
		"upgrade of embedded":             {embedded, []string{apiServer, keyOf(data)}, embedded, nil},
		"upgrade of managed":              {managed, []string{apiServer, storageMap, keyOf(member)}, managed, nil},
		"upgrade of external":             {external, []string{apiServer, storageMap}, external, nil},
		"other servers of external":       {external, []string{apiServer, storageMap}, strings.Replace(external, "https://b:2379", "https://c:2379", 1), nil},
		"first installation of embedded":  {embedded, nil, embedded, nil},
		"first installation of managed":   {embedded, nil, managed, nil},
		"embedded on its PVC that stayed": {embedded, []string{keyOf(data)}, embedded, nil},
		"managed on its PVCs that stayed": {managed, []string{keyOf(member)}, managed, nil},
		"managed after a move":            {embedded, []string{keyOf(data), keyOf(member)}, managed, nil},
		"embedded after a move":           {managed, []string{keyOf(data), keyOf(member), storageMap}, embedded, nil},
		"external after a move":           {embedded, []string{keyOf(data)}, external, nil},
		"embedded to managed": {embedded, []string{apiServer, keyOf(data)}, managed, []string{
			"type is managed, and the API servers in namespace etcd-operator-system keep the objects in embedded storage",
			"Set apiserver.storage.type to embedded", "move the objects first: docs/how-to/high-availability.md#move-a-release-of-helm"}},
		"managed to embedded": {managed, []string{apiServer, storageMap, keyOf(data), keyOf(member)}, embedded, []string{
			"type is embedded, and the API servers in namespace etcd-operator-system keep the objects in managed storage", "--reset-then-reuse-values"}},
		"managed to external":  {managed, []string{apiServer, storageMap}, external, []string{"keep the objects in managed storage"}},
		"external to managed":  {external, []string{apiServer, storageMap}, managed, []string{"keep the objects in external storage"}},
		"embedded to external": {embedded, []string{apiServer}, external, []string{"keep the objects in embedded storage"}},
		"managed on the PVC of embedded": {embedded, []string{keyOf(data)}, managed, []string{
			"PVC etcd-operator-apiserver-data of an installation with type embedded exists", "Set apiserver.storage.type to embedded.", "If no object is needed, delete the PVC"}},
		"embedded on the PVCs of managed": {managed, []string{keyOf(member)}, embedded, []string{
			"PVC data-etcd-operator-storage-0 of an installation with type managed exists", "To change the type, move the objects first"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := defaults(operator, test.installed).render(t)
			pvcOf(list, data)
			pvcOf(list, member)
			cluster := withInstalled(list, test.left...)
			r := defaults(operator, test.values)
			r.lookup = engine.ClientProvider(cluster)
			_, err := r.files(t)
			for release, err := range map[string]error{"Helm 4": err, "Helm 3": r.helm3Error(t, cluster)} {
				text := fmt.Sprint(err)
				if len(test.want) == 0 && err != nil {
					t.Errorf("%s: %v", release, err)
				}
				for _, part := range test.want {
					if !strings.Contains(text, part) {
						t.Errorf("%s: the error lacks %q: %s", release, part, text)
					}
				}
			}
		})
	}
}

// TestOtherStorageInAnotherNamespace: an installation in another namespace does not decide; other checks
// reject a second installation.
func TestOtherStorageInAnotherNamespace(t *testing.T) {
	t.Parallel()
	r := release{chart: operator, name: "other", namespace: "other-namespace", values: managed}
	r.lookup = withInstalled(defaults(operator, "").render(t), apiServer, pvc)
	if _, err := r.files(t); err != nil {
		t.Error(err)
	}
}
