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
// away, leaves the EtcdClusters behind. They can be read and deleted, and their deletion ends
// once the namespace exists again. The how-to page operator-state says so.
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
	// The API server's cache of namespaces may be a moment behind.
	eventually(t, func(ctx context.Context) error {
		_, err := clustersIn(namespace).Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) {
			return errorf("a change in a namespace that does not exist is not rejected: %v", err)
		}
		return nil
	})
	if err := release(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("without the namespace, the deletion ended with: %v", err)
	}

	if _, err := namespaces.Create(t.Context(), withoutFinalizers, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, release)
	if _, err := clustersIn(namespace).Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the EtcdCluster still exists: %v", err)
	}
}
