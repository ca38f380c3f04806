// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Given returns the fields of a spec that a request sets, except the named ones. It reads them by
// reflection, so that it also finds fields that the API gets later.
func Given(path *field.Path, spec any, except ...string) []string {
	var given []string
	value := reflect.ValueOf(spec)
	for i := range value.NumField() {
		name, inline := jsonName(value.Type().Field(i))
		switch content := value.Field(i); {
		case inline:
			given = append(given, Given(path, content.Interface(), except...)...)
		case !content.IsZero() && !slices.Contains(except, name):
			given = append(given, path.Child(name).String())
		}
	}
	return given
}

// GivenMetadata returns the labels and annotations of a request that the controller reads. Other
// labels and annotations, and the name, have no effect.
func GivenMetadata(object metav1.Object) []string {
	own := func(key string) bool {
		return strings.HasPrefix(key, "etcd_") || strings.HasPrefix(key, v1beta2.SchemeGroupVersion.Group+"/")
	}
	var given []string
	for name, entries := range map[string]map[string]string{"labels": object.GetLabels(), "annotations": object.GetAnnotations()} {
		for key := range maps.Keys(entries) {
			if own(key) {
				given = append(given, field.NewPath("metadata", name).Key(key).String())
			}
		}
	}
	slices.Sort(given)
	return given
}
