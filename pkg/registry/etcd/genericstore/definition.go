// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericstore

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

// Object is an API object with a size in protobuf and with fields for field selectors.
type Object interface {
	runtime.Object
	metav1.Object
	Size() int
	SelectableFields() fields.Set
}

// Definition describes a kind: where the spec (S) and the status (U) of an object (T) are, and
// which objects are valid.
type Definition[T Object, S, U any] struct {
	// GroupVersion is the version in which server-side apply names fields.
	GroupVersion schema.GroupVersion

	Spec   func(obj T) *S
	Status func(obj T) *U

	// InitialStatus returns the status of an object that was created at that time and that no
	// controller has observed. Nil leaves it empty.
	InitialStatus func(created metav1.Time) U
	// DefaultOnCreate sets defaults that are stored with a new object. The defaults of the API
	// types are set whenever an object is decoded. Nil sets nothing.
	DefaultOnCreate func(obj T)
	// KeepOnUpdate copies fields that an update leaves empty from the stored object: those that
	// DefaultOnCreate has set, and those that only an explicit value may change. Nil copies nothing.
	KeepOnUpdate func(newer, older T)

	Validate             func(obj T) field.ErrorList
	ValidateUpdate       func(newer, older T) field.ErrorList
	ValidateStatusUpdate func(newer, older T) field.ErrorList
	Warnings             func(obj T) []string
	// ReplaceWarnings returns more warnings for a PUT, which replaces the stored object. Nil
	// returns none.
	ReplaceWarnings func(newer, older T) []string
}

// getAttrs returns the labels and the fields of an object that selectors can name.
func getAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
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
