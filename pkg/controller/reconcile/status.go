// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
	"github.com/etcd-operator/etcd-operator/pkg/controller/metrics"
)

// StatusWrite is a write of the status of an object.
type StatusWrite[S any] struct {
	Kind    StatusKind[S]
	Gate    Gate
	Key     types.NamespacedName
	Object  metav1.Object
	Current S
	Now     time.Time
}

// Do writes the desired status with update and notes the write at the gate. It makes no request if the
// status is unchanged or if the object is being deleted. A conflict is no error: the event of the
// other write leads to another reconcile. Written is true if the API has taken a status.
//
// What the API would reject is left out before the write, and the condition StatusIncomplete names it, so
// that one bad value never keeps everything else from being reported. An API server that rejects
// more than this program knows gets the status once without that, and once more with nothing but
// the conditions changed. All other times there is one request at most.
func (w StatusWrite[S]) Do(ctx context.Context, desired func() S, update func(S) (metav1.Object, error)) (written bool, err error) {
	if w.Object.GetDeletionTimestamp() != nil {
		return false, nil
	}
	full := desired()
	if isSame(&full, &w.Current) {
		return false, nil
	}
	status, leftOut := w.Kind.fit(full, w.Current)
	w.report(&status, leftOut)
	if w.Kind.size(&status) > w.Kind.most {
		leftOut = append(leftOut, field.TooLong(field.NewPath("status"), "", w.Kind.most))
		if w.Kind.shorten != nil {
			w.Kind.shorten(&status)
			w.report(&status, leftOut)
		}
		if w.Kind.size(&status) > w.Kind.most {
			status = w.reduced(full, leftOut)
		}
	}
	updated, err := w.send(&status, update)
	for try := 0; isRejected(err) && try < 2; try++ {
		leftOut = append(leftOut, rejections(err)...)
		if try > 0 || !validation.LeaveOut(&status, rejections(err)) {
			status = w.reduced(full, leftOut)
		} else {
			w.report(&status, leftOut)
		}
		updated, err = w.send(&status, update)
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("write the status: %w", err)
	}
	if updated == nil {
		return false, nil
	}
	w.Gate.Note(w.Key, updated)
	if len(leftOut) > 0 {
		metrics.StatusFieldsLeftOut(w.Kind.name)
		klog.FromContext(ctx).Info("Left out of the status what the API rejects", "kind", w.Kind.name, "object", w.Key, "rejected", describeLeftOut(leftOut))
	}
	return true, nil
}

// send writes a status unless it is the current one.
func (w StatusWrite[S]) send(status *S, update func(S) (metav1.Object, error)) (metav1.Object, error) {
	if isSame(status, &w.Current) {
		return nil, nil
	}
	return update(*status)
}

// reduced returns the current status, which the API has accepted, with the conditions of the full one.
func (w StatusWrite[S]) reduced(full S, leftOut field.ErrorList) S {
	status, _ := w.Kind.fit(w.Kind.reduce(full, w.Current), w.Current)
	w.report(&status, leftOut)
	return status
}

// report names the fields that the status lacks in its condition StatusIncomplete.
func (w StatusWrite[S]) report(status *S, leftOut field.ErrorList) {
	if len(leftOut) > 0 {
		w.Kind.report(status, w.Current, w.Object.GetGeneration(), w.Now, describeLeftOut(leftOut))
	}
}

// isSame compares statuses. Most of the time they are the same, which reflect.DeepEqual finds several
// times faster.
func isSame[S any](a, b *S) bool {
	return reflect.DeepEqual(a, b) || equality.Semantic.DeepEqual(*a, *b)
}

// isRejected is true if the API rejects the content of what was written. The same content is
// rejected again.
func isRejected(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// rejections returns which fields an API server rejects, as far as it says so.
func rejections(err error) field.ErrorList {
	status, says := err.(apierrors.APIStatus) // isRejected has looked at wrapped errors
	if !says || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return field.ErrorList{{Type: field.ErrorTypeInternal, Field: "status", Detail: err.Error()}}
	}
	var errs field.ErrorList
	for _, cause := range status.Status().Details.Causes {
		errs = append(errs, &field.Error{Type: field.ErrorType(cause.Type), Field: cause.Field, BadValue: field.OmitValueType{}, Detail: cause.Message})
	}
	return errs
}
