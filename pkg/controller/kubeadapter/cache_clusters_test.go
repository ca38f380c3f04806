// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadapter

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// scanned notices lists that go through all objects.
type scanned struct {
	cache.Indexer
	t *testing.T
}

func (s scanned) List() []any {
	s.t.Error("all objects were listed")
	return s.Indexer.List()
}

func (s scanned) Index(name string, object any) ([]any, error) {
	if name == cache.NamespaceIndex {
		s.t.Error("all objects of a namespace were listed")
	}
	return s.Indexer.Index(name, object)
}

// TestCacheFindsTheObjectsOfACluster: by its labels, in its namespace, and without looking
// at those of other clusters.
func TestCacheFindsTheObjectsOfACluster(t *testing.T) {
	t.Parallel()
	set := func() scanned {
		indices := Indices()
		indices[cache.NamespaceIndex] = cache.MetaNamespaceIndexFunc
		return scanned{cache.NewIndexer(cache.MetaNamespaceKeyFunc, indices), t}
	}
	pods, pvcs, endpoints := set(), set(), set()
	l := ClusterCache{PodSet: pods, PVCSet: pvcs, Slices: endpoints}
	for _, of := range []struct {
		namespace, name string
		labels          map[string]string
	}{
		{"ns", "a-1", resources.Labels("a")},
		{"ns", "a-2", resources.Labels("a")},
		{"ns", "b-1", resources.Labels("b")},
		{"other", "a-1", resources.Labels("a")},
		{"ns", "hidden", map[string]string{resources.LabelApp: resources.AppName}},
		{"ns", "another-app", map[string]string{resources.LabelApp: "web", resources.LabelCluster: "a"}},
	} {
		object := metav1.ObjectMeta{Namespace: of.namespace, Name: of.name, UID: types.UID(of.name), Labels: of.labels}
		slice := object
		slice.Labels = map[string]string{discoveryv1.LabelServiceName: of.labels[resources.LabelCluster] + "-client"}
		for _, err := range []error{
			pods.Add(&corev1.Pod{ObjectMeta: object}),
			pvcs.Add(&corev1.PersistentVolumeClaim{ObjectMeta: object}),
			endpoints.Add(&discoveryv1.EndpointSlice{ObjectMeta: slice, Endpoints: []discoveryv1.Endpoint{
				{TargetRef: &corev1.ObjectReference{Kind: "Pod", UID: types.UID(of.name)}},
				{TargetRef: &corev1.ObjectReference{Kind: "Pod", UID: "unready"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false)}},
			}}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	var got []string
	foundPods, err := l.Pods("ns", "a")
	for _, p := range foundPods {
		got = append(got, "pod "+p.Namespace+"/"+p.Name)
	}
	foundPVCs, pvcsErr := l.PVCs("ns", "a")
	for _, p := range foundPVCs {
		got = append(got, "pvc "+p.Namespace+"/"+p.Name)
	}
	inEndpoints, endpointsErr := l.PodsInEndpoints("ns", "b-client")
	hidden, hiddenErr := l.Pod("ns", "hidden")
	if err != nil || pvcsErr != nil || endpointsErr != nil || hiddenErr != nil || hidden.Name != "hidden" {
		t.Fatal(err, pvcsErr, endpointsErr, hiddenErr)
	}
	slices.Sort(got)
	want := []string{"pod ns/a-1", "pod ns/a-2", "pvc ns/a-1", "pvc ns/a-2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects of a cluster: %s", diff)
	}
	if diff := cmp.Diff(map[types.UID]bool{"b-1": true}, inEndpoints); diff != "" {
		t.Errorf("where a service leads: %s", diff)
	}
}
