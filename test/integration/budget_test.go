// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
)

// TestNamespaceCannotFillTheStorage changes the largest object as a tenant, until the API server makes the tenant wait. A tenant of
// another namespace, deletions and a user with the right to exceed the limits do not wait. Every verb in the namespace is not that right.
func TestNamespaceCannotFillTheStorage(t *testing.T) {
	t.Parallel()
	namespace, other := newNamespace(t), newNamespace(t)
	for _, of := range []string{namespace, other} {
		large := newCluster("large")
		large.Annotations = map[string]string{"a": strings.Repeat("x", genericstore.MaxDeclaredBytes-4096)}
		create(t, of, large)
		grant(t, of, "tenant-of-"+of, "get", "patch", "delete")
	}
	patch := func(of, user string, i int) error {
		return userClient(t, user).EtcdV1beta2().RESTClient().Patch(types.MergePatchType).Namespace(of).Resource("etcdclusters").Name("large").
			MaxRetries(0).Body([]byte(`{"metadata":{"annotations":{"i":"` + strconv.Itoa(i) + `"}}}`)).Do(t.Context()).Error()
	}
	var err error
	written := 0
	for ; err == nil && written < 200; written++ {
		err = patch(namespace, "tenant-of-"+namespace, written)
	}
	if seconds, again := apierrors.SuggestsClientDelay(err); !apierrors.IsTooManyRequests(err) || !again || seconds < 1 ||
		!strings.Contains(err.Error(), "namespace "+namespace+" has written") {
		t.Fatalf("after %d writes of 252 KiB: %v; want a status 429 that says when to send again", written, err)
	}
	if err := patch(other, "tenant-of-"+other, 0); err != nil {
		t.Errorf("another namespace: %v", err)
	}
	mustKubectl(t, "apply", "-f", filepath.Join(env.repo, "artifacts", "install", "40-user-roles.yaml"))
	grant(t, namespace, "every-verb-in-"+namespace, "*")
	grant(t, namespace, "may-exceed-"+namespace, "patch")
	mustKubectl(t, "create", "clusterrolebinding", "may-exceed-"+namespace, "--clusterrole=etcd-operator:exceed", "--user=may-exceed-"+namespace)
	eventually(t, func(context.Context) error { // the authorizer learns of the binding a moment later
		return patch(namespace, "may-exceed-"+namespace, 1000)
	})
	for user, limited := range map[string]bool{"every-verb-in-" + namespace: true, "may-exceed-" + namespace: false} {
		rejected := 0
		for i := range 20 {
			switch err := patch(namespace, user, 2000+i); {
			case apierrors.IsTooManyRequests(err):
				rejected++
			case err != nil:
				t.Errorf("%s: %v", user, err)
			}
		}
		if (rejected > 0) != limited {
			t.Errorf("%s: %d of 20 updates of 252 KiB were rejected", user, rejected)
		}
	}
	if err := userClient(t, "tenant-of-"+namespace).EtcdV1beta2().EtcdClusters(namespace).Delete(t.Context(), "large", metav1.DeleteOptions{}); err != nil {
		t.Errorf("deletion: %v", err)
	}
}
