// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// ErrDeletionProtected is why a cluster cannot be deleted, and what to do about it.
var ErrDeletionProtected = errors.New("spec.deletionProtection is true; set it to false first, if the cluster and its data shall really go")

// Delete refuses a cluster that is protected. That holds for every way to delete,
// also for that of a namespace: the namespace waits until the protection is lifted.
func (r *REST) Delete(
	ctx context.Context, name string, admit rest.ValidateObjectFunc, options *metav1.DeleteOptions,
) (runtime.Object, bool, error) {
	return r.Store.Delete(ctx, name, unlessProtected(admit), options)
}

// DeleteCollection deletes until it meets a cluster that is protected.
func (r *REST) DeleteCollection(
	ctx context.Context, admit rest.ValidateObjectFunc, options *metav1.DeleteOptions, selection *metainternalversion.ListOptions,
) (runtime.Object, error) {
	return r.Store.DeleteCollection(ctx, unlessProtected(admit), options, selection)
}

// unlessProtected judges the very object that is about to go: the store calls it
// inside the transaction that deletes.
func unlessProtected(admit rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		cluster, ok := obj.(*v1beta2.EtcdCluster)
		if !ok {
			return apierrors.NewInternalError(fmt.Errorf("unexpected type %T", obj))
		}
		if cluster.Spec.DeletionProtection {
			return apierrors.NewForbidden(v1beta2.Resource("etcdclusters"), cluster.Name, ErrDeletionProtected)
		}
		if admit == nil {
			return nil
		}
		return admit(ctx, obj)
	}
}
