// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestObjectsOutliveTheirNamespace: a namespace that was finalized by hand, while the API was
// away, leaves the EtcdClusters behind. They can be read, changed and deleted, and their deletion ends
// without the namespace, too.
func TestObjectsOutliveTheirNamespace(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	cluster := newCluster("a")
	cluster.Finalizers = []string{resources.Finalizer}
	create(t, namespace, cluster)

	// No namespace controller runs beside the kube-apiserver of these tests.
	namespaces := env.client.CoreV1().Namespaces()
	if err := namespaces.Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	withoutFinalizers := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := namespaces.Finalize(t.Context(), withoutFinalizers, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := namespaces.Get(t.Context(), namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("the namespace still exists: %v", err)
	}

	release := func(ctx context.Context) error {
		_, err := clustersIn(namespace).Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		return err
	}
	if _, err := clustersIn(namespace).Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := clustersIn(namespace).Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := release(t.Context()); err != nil {
		t.Errorf("without the namespace, the deletion does not end: %v", err)
	}
	if _, err := clustersIn(namespace).Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the EtcdCluster still exists: %v", err)
	}
}
