// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// listIndex is left out when errors are compared, so that an entry that moves within
// its list stays the same one.
var listIndex = regexp.MustCompile(`\[[0-9]+\]`)

type errorKey struct {
	kind               field.ErrorType
	field, bad, detail string
}

func keyOf(err *field.Error) errorKey {
	return errorKey{
		kind:   err.Type,
		field:  listIndex.ReplaceAllString(err.Field, "[]"),
		bad:    fmt.Sprint(err.BadValue),
		detail: err.Detail,
	}
}

// ratchet returns the errors of the new object that the old one did not have. An
// object that was stored before a rule existed can then still be labelled, scaled,
// repaired one field at a time, and deleted; only what makes it worse is rejected.
func ratchet[T any](newObject, oldObject T, validate func(T) field.ErrorList) field.ErrorList {
	newErrs := validate(newObject)
	if len(newErrs) == 0 {
		return nil
	}
	known := map[errorKey]bool{}
	for _, err := range validate(oldObject) {
		known[keyOf(err)] = true
	}
	var errs field.ErrorList
	for _, err := range newErrs {
		if !known[keyOf(err)] {
			errs = append(errs, err)
		}
	}
	return errs
}
