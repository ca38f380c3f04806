// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
)

// TestNamespaceCannotFillTheStorage changes the largest object 100 times, which would write 25 MiB. Two budgets are what a
// namespace may write between two compactions.
func TestNamespaceCannotFillTheStorage(t *testing.T) {
	t.Parallel()
	server := startStandalone(t, "--namespace-write-budget=4Mi")
	large := newCluster("large")
	large.Annotations = map[string]string{"a": strings.Repeat("x", genericstore.MaxDeclaredBytes-4096)}
	// The client of the loopback address is an administrator.
	config := rest.AnonymousClientConfig(server.config)
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.EtcdV1beta2().EtcdClusters("default").Create(t.Context(), large, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	rejected := 0
	for i := range 100 {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"i":"%d"}}}`, i)
		err := client.EtcdV1beta2().RESTClient().Patch(types.MergePatchType).Namespace("default").Resource("etcdclusters").Name("large").
			MaxRetries(0).Body(patch).Do(t.Context()).Error()
		if seconds, again := apierrors.SuggestsClientDelay(err); err != nil && (!apierrors.IsTooManyRequests(err) || !again || seconds < 1) {
			t.Fatal(err)
		}
		if err != nil {
			rejected++
		}
	}
	status, err := server.etcd.Status(t.Context(), server.etcd.Endpoints()[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of 100 updates were rejected, and the database has %d MiB", rejected, status.DbSize>>20)
	if limit := int64(2 * 4 << 20); status.DbSize > limit {
		t.Errorf("the database has %d MiB, which is more than %d MiB; %d updates were rejected", status.DbSize>>20, limit>>20, rejected)
	}
	if err := client.EtcdV1beta2().EtcdClusters("default").Delete(t.Context(), "large", metav1.DeleteOptions{}); err != nil {
		t.Error("deletion:", err)
	}
}
