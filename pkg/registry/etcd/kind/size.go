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

type sized interface{ Size() int }

// validateSize refuses an object that etcd would not take, and names the part of
// it that takes most of the room.
func (s Strategy[T, S, U]) validateSize(obj T) field.ErrorList {
	total := obj.Size()
	if total <= MaxObjectBytes {
		return nil
	}
	spec, status := bytesOf(s.Spec(obj)), bytesOf(s.Status(obj))
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
		Detail: fmt.Sprintf("the object takes %d KiB in storage, of which %s %d KiB; it may take at most %d KiB",
			total/1024, largest, bytes/1024, MaxObjectBytes/1024),
		Origin: "size",
	}}
}

func bytesOf(part any) int {
	if known, ok := part.(sized); ok {
		return known.Size()
	}
	return 0
}
