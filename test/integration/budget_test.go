// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
)

// TestNamespaceCannotFillTheStorage changes the largest object as a tenant, until the API server makes the tenant wait. A tenant of
// another namespace and deletions do not wait.
func TestNamespaceCannotFillTheStorage(t *testing.T) {
	t.Parallel()
	namespace, other := newNamespace(t), newNamespace(t)
	for _, of := range []string{namespace, other} {
		large := newCluster("large")
		large.Annotations = map[string]string{"a": strings.Repeat("x", genericstore.MaxDeclaredBytes-4096)}
		create(t, of, large)
		grant(t, of, "tenant-of-"+of, "get", "patch", "delete")
	}
	patch := func(of string, i int) error {
		return userClient(t, "tenant-of-"+of).EtcdV1beta2().RESTClient().Patch(types.MergePatchType).Namespace(of).Resource("etcdclusters").Name("large").
			MaxRetries(0).Body([]byte(`{"metadata":{"annotations":{"i":"` + strconv.Itoa(i) + `"}}}`)).Do(t.Context()).Error()
	}
	var err error
	written := 0
	for ; err == nil && written < 200; written++ {
		err = patch(namespace, written)
	}
	if seconds, again := apierrors.SuggestsClientDelay(err); !apierrors.IsTooManyRequests(err) || !again || seconds < 1 ||
		!strings.Contains(err.Error(), "namespace "+namespace+" has written") {
		t.Fatalf("after %d writes of 252 KiB: %v; want a status 429 that says when to send again", written, err)
	}
	if err := patch(other, 0); err != nil {
		t.Errorf("another namespace: %v", err)
	}
	if err := userClient(t, "tenant-of-"+namespace).EtcdV1beta2().EtcdClusters(namespace).Delete(t.Context(), "large", metav1.DeleteOptions{}); err != nil {
		t.Errorf("deletion: %v", err)
	}
}
