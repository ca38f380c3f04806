// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Delete rejects the deletion of an EtcdBackup that holds what it has stored. Without the object nothing would hold it:
// an EtcdBackup that is created with the same name continues the series, and its retention goes on. This also holds for
// the deletion of a namespace, which waits until the hold is released.
func (r *REST) Delete(
	ctx context.Context, name string, admit rest.ValidateObjectFunc, options *metav1.DeleteOptions,
) (runtime.Object, bool, error) {
	return r.GuardedStore.Delete(ctx, name, rejectHeld(admit), options)
}

// DeleteCollection deletes EtcdBackups until it finds one that is held.
func (r *REST) DeleteCollection(
	ctx context.Context, admit rest.ValidateObjectFunc, options *metav1.DeleteOptions, selection *metainternalversion.ListOptions,
) (runtime.Object, error) {
	return r.GuardedStore.DeleteCollection(ctx, rejectHeld(admit), options, selection)
}

// rejectHeld checks the object that is deleted: the store calls the function inside the transaction that deletes the
// object.
func rejectHeld(admit rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		backup, ok := obj.(*v1beta2.EtcdBackup)
		if !ok {
			return fmt.Errorf("the store of EtcdBackups returned a %T", obj)
		}
		if why := heldBy(backup); why != nil {
			return apierrors.NewForbidden(v1beta2.Resource("etcdbackups"), backup.Name, why)
		}
		if admit == nil {
			return nil
		}
		return admit(ctx, obj)
	}
}

// heldBy returns why an EtcdBackup may not be deleted, nil if it may.
func heldBy(b *v1beta2.EtcdBackup) error {
	release := fmt.Sprintf("kubectl etcd backup release %s -n %s", b.Name, b.Namespace)
	switch {
	case b.IsHeld():
		return fmt.Errorf("spec.hold is true; to delete the EtcdBackup, set spec.hold=false first: %s", release)
	case len(b.Spec.HeldSnapshots) > 0:
		return fmt.Errorf("spec.heldSnapshots names %d snapshots; to delete the EtcdBackup, remove them from the list first: %s", len(b.Spec.HeldSnapshots), release)
	default:
		return nil
	}
}
