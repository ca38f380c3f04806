// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// WriteStatus writes the desired status of an object with update, in at most one request,
// and notes the write at the gate. It makes no request if the status is unchanged or if the
// object is being deleted. A conflict is no error: the event of the other write leads to
// another reconcile. Written is true if the API has taken the status.
func WriteStatus[S any](
	gate Gate, key types.NamespacedName, object metav1.Object, current S, desired func() S, update func(S) (metav1.Object, error),
) (written bool, err error) {
	if object.GetDeletionTimestamp() != nil {
		return false, nil
	}
	status := desired()
	// Most of the time the status is the same, which reflect.DeepEqual finds several times faster.
	if reflect.DeepEqual(&status, &current) || equality.Semantic.DeepEqual(status, current) {
		return false, nil
	}
	updated, err := update(status)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("write the status: %w", err)
	}
	gate.Note(key, updated)
	return true, nil
}
