// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadapter

import (
	"errors"
	"maps"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestNodeReports: a report is the version of the Lease of a node, however old or young the Lease says it
// is. A Lease that cannot be read is an error, never a report.
func TestNodeReports(t *testing.T) {
	t.Parallel()
	denied := errors.New("denied")
	for name, test := range map[string]struct {
		fails error
		want  map[string]string
	}{
		"nodes with and without a Lease": {want: map[string]string{"a": "7"}},
		"a Lease that may not be read":   {fails: denied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := fake.NewClientset()
			client.PrependReactor("get", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
				get, ok := action.(clienttesting.GetAction)
				switch {
				case !ok || get.GetNamespace() != corev1.NamespaceNodeLease:
					return true, nil, errors.New("another request")
				case test.fails != nil:
					return true, nil, test.fails
				case get.GetName() != "a":
					return true, nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), get.GetName())
				}
				return true, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "7"}}, nil
			})
			reports, err := Client{Kubernetes: client}.NodeReports(t.Context(), []string{"a", "virtual"})
			if !errors.Is(err, test.fails) || !maps.Equal(reports, test.want) {
				t.Errorf("reports %v, error %v; want %v, %v", reports, err, test.want, test.fails)
			}
		})
	}
}

// TestListControlledPods: what counts is the controller of a pod, on whatever page it is and whatever labels it has.
func TestListControlledPods(t *testing.T) {
	t.Parallel()
	cluster := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "ours"}}
	pod := func(name string, owner types.UID) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "EtcdCluster", Name: "c", UID: owner, Controller: ptr.To(true)},
		}}}
	}
	pages := map[string]*corev1.PodList{
		"":  {ListMeta: metav1.ListMeta{Continue: "2"}, Items: []corev1.Pod{pod("a", "ours"), pod("b", "theirs")}},
		"2": {Items: []corev1.Pod{pod("c", "ours"), {ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d"}}}},
	}
	client := fake.NewClientset()
	client.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		list, ok := action.(clienttesting.ListActionImpl)
		if !ok || list.GetNamespace() != "ns" || list.ListOptions.LabelSelector != "" {
			return true, nil, errors.New("another request")
		}
		return true, pages[list.ListOptions.Continue], nil
	})
	pods, err := (Client{Kubernetes: client}).ListControlledPods(t.Context(), cluster)
	if err != nil || len(pods) != 2 || pods[0].Name != "a" || pods[1].Name != "c" {
		t.Errorf("got %v, %v", pods, err)
	}
}
