// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadapter

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

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

// TestUnresponsiveNodes: a node reports if its Lease is renewed while it is waited for, however old or
// young the Lease says it is. A Lease that cannot be read is an error, never a report.
func TestUnresponsiveNodes(t *testing.T) {
	t.Parallel()
	denied := errors.New("denied")
	for name, test := range map[string]struct {
		// renewed is how often the Lease of a node is renewed; no entry: it has none.
		renewed map[string]time.Duration
		nodes   []string
		fails   error
		want    []string
		within  time.Duration
	}{
		"every kubelet reports":          {renewed: map[string]time.Duration{"a": 10 * time.Second, "b": 9 * time.Second}, nodes: []string{"a", "b"}, within: 11 * time.Second},
		"one is cut off":                 {renewed: map[string]time.Duration{"a": time.Hour, "b": 10 * time.Second}, nodes: []string{"a", "b"}, want: []string{"a"}, within: 16 * time.Second},
		"a node that has no Lease":       {renewed: map[string]time.Duration{}, nodes: []string{"virtual"}},
		"no node":                        {},
		"a Lease that may not be read":   {renewed: map[string]time.Duration{"a": time.Second}, nodes: []string{"a"}, fails: denied},
		"the others are not waited for":  {renewed: map[string]time.Duration{"a": 2 * time.Second, "b": time.Hour}, nodes: []string{"a"}, within: 4 * time.Second},
		"two of three do not report any": {renewed: map[string]time.Duration{"a": time.Hour, "b": time.Second, "c": time.Hour}, nodes: []string{"a", "b", "c"}, want: []string{"a", "c"}, within: 16 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				client := fake.NewClientset()
				client.PrependReactor("get", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
					get, ok := action.(clienttesting.GetAction)
					if !ok || get.GetNamespace() != corev1.NamespaceNodeLease {
						return true, nil, errors.New("another request")
					}
					if test.fails != nil {
						return true, nil, test.fails
					}
					period, found := test.renewed[get.GetName()]
					if !found {
						return true, nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), get.GetName())
					}
					return true, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
						Name: get.GetName(), ResourceVersion: strconv.Itoa(1 + int(time.Since(begun)/period)),
					}}, nil
				})
				unresponsive, err := Client{Kubernetes: client}.UnresponsiveNodes(t.Context(), test.nodes)
				if !errors.Is(err, test.fails) || !slices.Equal(unresponsive, test.want) {
					t.Errorf("unresponsive are %v, error %v; want %v, %v", unresponsive, err, test.want, test.fails)
				}
				if took := time.Since(begun); took > test.within {
					t.Errorf("it took %v, want at most %v", took, test.within)
				}
			})
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
