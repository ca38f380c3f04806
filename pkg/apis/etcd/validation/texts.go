// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxText is how long one text of a spec is at most, in bytes. Few texts have a limit of their own, and
// this limit holds for all others, also for those of types of Kubernetes.
const maxText = 32 << 10

// ValidateTexts returns the texts of a spec that are too long. Those that the spec before, if there is one,
// has too are left out, so that an object that was stored before the limit existed can be changed.
func ValidateTexts(spec, before any) field.ErrorList {
	known := map[string]bool{}
	if before != nil {
		eachText(reflect.ValueOf(before), field.NewPath("spec"), func(_ *field.Path, text string) { known[text] = true })
	}
	var errs field.ErrorList
	eachText(reflect.ValueOf(spec), field.NewPath("spec"), func(path *field.Path, text string) {
		if !known[text] {
			err := field.TooLong(path, "", maxText)
			err.Detail = fmt.Sprintf("has %d bytes; may not be more than %d bytes", len(text), maxText)
			errs = append(errs, err)
		}
	})
	return bounded(errs)
}

// eachText calls visit for each text below a value that is too long.
func eachText(at reflect.Value, path *field.Path, visit func(*field.Path, string)) {
	switch at.Kind() {
	case reflect.String:
		if at.Len() > maxText {
			visit(path, at.String())
		}
	case reflect.Pointer:
		eachText(at.Elem(), path, visit)
	case reflect.Slice:
		for i := range at.Len() {
			eachText(at.Index(i), path.Index(i), visit)
		}
	case reflect.Map:
		for _, key := range at.MapKeys() {
			eachText(key, path, visit)
			eachText(at.MapIndex(key), path.Key(echo(key.String())), visit)
		}
	case reflect.Struct:
		for i := range at.NumField() {
			field := at.Type().Field(i)
			below := path
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
				below = path.Child(name)
			}
			if field.IsExported() {
				eachText(at.Field(i), below, visit)
			}
		}
	default: // no text
	}
}
