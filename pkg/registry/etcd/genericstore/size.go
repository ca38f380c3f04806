// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericstore

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxObjectBytes is the largest size of a stored object. etcd rejects requests of more than
// 1.5 MiB, which the client would see as an internal error. The difference is for the key, the
// envelope and encryption at rest.
const MaxObjectBytes = 1400 * 1024

// MaxDeclaredBytes is the largest size of what users write into an object: the metadata and the spec.
// The storage is shared by all namespaces, and keeps each version of an object until it is compacted.
// The rest of MaxObjectBytes is for the status, so that the controller can report problems of the
// largest object too.
const MaxDeclaredBytes = 256 * 1024

type sized interface{ Size() int }

// validateDeclared rejects metadata and a spec that are too large, and names the larger of the two.
func (s Strategy[T, S, U]) validateDeclared(obj T) field.ErrorList {
	total := obj.Size() - sizeOf(s.Status(obj))
	if total <= MaxDeclaredBytes {
		return nil
	}
	spec := sizeOf(s.Spec(obj))
	largest, bytes := "metadata", total-spec
	if spec > bytes {
		largest, bytes = "spec", spec
	}
	return tooLong(largest, "metadata and spec have %d KiB in storage (%s: %d KiB); the limit is %d KiB; remove what etcd and the operator do not need, "+
		"such as large annotations", total/1024, largest, bytes/1024, MaxDeclaredBytes/1024)
}

// validateDeclaredUpdate is validateDeclared for an update. An object that was stored before the limit existed
// may change if it does not grow. Managed fields do not count as growth: the server writes them, and the
// removal of a finalizer may add some.
func (s Strategy[T, S, U]) validateDeclaredUpdate(newer, older T) field.ErrorList {
	if s.written(newer) <= s.written(older) {
		return nil
	}
	return s.validateDeclared(newer)
}

// written returns the size of what users have written themselves.
func (s Strategy[T, S, U]) written(obj T) int {
	total := obj.Size() - sizeOf(s.Status(obj))
	for _, entry := range obj.GetManagedFields() {
		total -= entry.Size()
	}
	return total
}

// validateStored rejects an object that is too large for etcd.
func (s Strategy[T, S, U]) validateStored(obj T) field.ErrorList {
	total, spec, status := obj.Size(), sizeOf(s.Spec(obj)), sizeOf(s.Status(obj))
	if total <= MaxObjectBytes {
		return nil
	}
	largest, bytes := "metadata", total-spec-status
	if spec > bytes {
		largest, bytes = "spec", spec
	}
	if status > bytes {
		largest, bytes = "status", status
	}
	return tooLong(largest, "the object has %d KiB in storage (%s: %d KiB); the limit is %d KiB; make %s smaller",
		total/1024, largest, bytes/1024, MaxObjectBytes/1024, largest)
}

func tooLong(at, detail string, args ...any) field.ErrorList {
	return field.ErrorList{{Type: field.ErrorTypeTooLong, Field: at, Detail: fmt.Sprintf(detail, args...), Origin: "size"}}
}

func sizeOf(part any) int {
	if known, ok := part.(sized); ok {
		return known.Size()
	}
	return 0
}
