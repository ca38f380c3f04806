// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxObjectBytes is how large an object may be in storage. etcd refuses requests
// of more than 1.5 MiB, with an error that reaches the user as an internal one;
// the difference is room for the key, the envelope and encryption at rest.
const MaxObjectBytes = 1400 * 1024

// statusReserve is what users leave of that for the status, so that the controller can say
// what is wrong with the largest object as well.
const statusReserve = 256 * 1024

type sized interface{ Size() int }

// validateUserSize refuses an object that leaves no room for a status.
func (s Strategy[T, S, U]) validateUserSize(obj T) field.ErrorList {
	status := bytesOf(s.Status(obj))
	return s.validateSize(obj, obj.Size()-status+max(status, statusReserve))
}

// validateSize refuses an object that etcd would not take, and names the part of
// it that takes most of the room.
func (s Strategy[T, S, U]) validateSize(obj T, total int) field.ErrorList {
	if total <= MaxObjectBytes {
		return nil
	}
	spec, status := bytesOf(s.Spec(obj)), bytesOf(s.Status(obj))
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
		Detail: fmt.Sprintf("the object takes %d KiB in storage, %s %d KiB of that; it may take at most %d KiB, and %d KiB of these are kept for the status",
			total/1024, largest, bytes/1024, MaxObjectBytes/1024, statusReserve/1024),
		Origin: "size",
	}}
}

func bytesOf(part any) int {
	if known, ok := part.(sized); ok {
		return known.Size()
	}
	return 0
}
