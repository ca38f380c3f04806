// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadapter

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned/fake"
)

// TestClustersAreListedInPages: a list of all EtcdClusters is read in pages, and keeps neither their specs nor their statuses.
func TestClustersAreListedInPages(t *testing.T) {
	t.Parallel()
	const pages = 3
	client, page := fake.NewSimpleClientset(), 0
	client.PrependReactor("list", "etcdclusters", func(action clienttesting.Action) (bool, runtime.Object, error) {
		options := action.(clienttesting.ListActionImpl).ListOptions
		after := ""
		if page > 0 {
			after = fmt.Sprint("after-", page)
		}
		if options.Limit != clustersOfAPage || options.Continue != after {
			t.Errorf("page %d is requested with %+v", page, options)
		}
		c := v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("c", page), UID: "uid", Annotations: map[string]string{"a": "b"}}}
		c.Spec.Version = "3.6.16"
		list := &v1beta2.EtcdClusterList{Items: []v1beta2.EtcdCluster{c}}
		if page++; page < pages {
			list.Continue = fmt.Sprint("after-", page)
		}
		return true, list, nil
	})
	clusters, err := Client{Etcd: client}.ListClusters(t.Context(), "")
	if err != nil || len(clusters) != pages {
		t.Fatalf("%d clusters, %v", len(clusters), err)
	}
	for i, c := range clusters {
		if c.Namespace != "ns" || c.Name != fmt.Sprint("c", i) || c.UID != "uid" || c.Spec.Version != "" || c.Annotations != nil {
			t.Errorf("cluster %d is %+v", i, c)
		}
	}
}
