// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// ErrDeletionProtected is the reason for which a deletion of a protected cluster is forbidden.
var ErrDeletionProtected = errors.New("spec.deletionProtection is true; to delete the cluster and its data, set spec.deletionProtection=false first")

// Delete rejects the deletion of a protected cluster. This also holds for the deletion of a
// namespace, which waits until the protection is removed.
func (r *REST) Delete(
	ctx context.Context, name string, admit rest.ValidateObjectFunc, options *metav1.DeleteOptions,
) (runtime.Object, bool, error) {
	return r.Store.Delete(ctx, name, rejectProtected(admit), options)
}

// DeleteCollection deletes clusters until it finds a protected one.
func (r *REST) DeleteCollection(
	ctx context.Context, admit rest.ValidateObjectFunc, options *metav1.DeleteOptions, selection *metainternalversion.ListOptions,
) (runtime.Object, error) {
	return r.Store.DeleteCollection(ctx, rejectProtected(admit), options, selection)
}

// rejectProtected checks the object that is deleted: the store calls the function inside the
// transaction that deletes the object.
func rejectProtected(admit rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		cluster, err := asCluster(obj)
		if err != nil {
			return err
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
