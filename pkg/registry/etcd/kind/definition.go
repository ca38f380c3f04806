// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Object is an API object that knows how many bytes it takes in protobuf and
// which of its fields a selector can name.
type Object interface {
	runtime.Object
	metav1.Object
	Size() int
	SelectableFields() fields.Set
}

// Definition says what is particular about a kind: where its spec (S) and its
// status (U) are, and what makes an object (T) valid.
type Definition[T Object, S, U any] struct {
	// GroupVersion in which server-side apply names the fields that are reset.
	GroupVersion schema.GroupVersion

	Spec   func(obj T) *S
	Status func(obj T) *U

	// InitialStatus is the status of an object that was created at that time and that no
	// controller has looked at. Nil leaves it empty.
	InitialStatus func(created metav1.Time) U
	// DefaultOnCreate fills, in an object that is created, what is stored from then on.
	// Nil fills nothing. Decoding defaults apply whenever an object is read; these do not.
	DefaultOnCreate func(obj T)
	// KeepOnUpdate takes from the stored object what DefaultOnCreate has filled and the
	// update leaves out. Nil takes nothing.
	KeepOnUpdate func(newer, older T)

	Validate             func(obj T) field.ErrorList
	ValidateUpdate       func(newer, older T) field.ErrorList
	ValidateStatusUpdate func(newer, older T) field.ErrorList
	Warnings             func(obj T) []string
}

// attributes returns what a selector can name of an object of any of the kinds.
func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	typed, ok := obj.(Object)
	if !ok {
		return nil, nil, fmt.Errorf("%T has no selectable fields", obj)
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, nil, err
	}
	set := typed.SelectableFields()
	set["metadata.name"] = accessor.GetName()
	set["metadata.namespace"] = accessor.GetNamespace()
	return accessor.GetLabels(), set, nil
}
