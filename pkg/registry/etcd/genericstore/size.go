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

// statusReserve is the part of MaxObjectBytes that only the status may use, so that the
// controller can report problems of the largest object too.
const statusReserve = 256 * 1024

type sized interface{ Size() int }

// validateUserSize rejects an object that leaves no room for a status.
func (s Strategy[T, S, U]) validateUserSize(obj T) field.ErrorList {
	status := sizeOf(s.Status(obj))
	return s.validateSize(obj, obj.Size()-status+max(status, statusReserve))
}

// validateSize rejects an object that is too large for etcd, and names its largest part.
func (s Strategy[T, S, U]) validateSize(obj T, total int) field.ErrorList {
	if total <= MaxObjectBytes {
		return nil
	}
	spec, status := sizeOf(s.Spec(obj)), sizeOf(s.Status(obj))
	total = obj.Size()
	largest, bytes := "metadata", total-spec-status
	if spec > bytes {
		largest, bytes = "spec", spec
	}
	if status > bytes {
		largest, bytes = "status", status
	}
	return field.ErrorList{{
		Type:  field.ErrorTypeTooLong,
		Field: largest,
		Detail: fmt.Sprintf("the object has %d KiB in storage (%s: %d KiB); the limit is %d KiB, and %d KiB of the limit are reserved for the status",
			total/1024, largest, bytes/1024, MaxObjectBytes/1024, statusReserve/1024),
		Origin: "size",
	}}
}

func sizeOf(part any) int {
	if known, ok := part.(sized); ok {
		return known.Size()
	}
	return 0
}
