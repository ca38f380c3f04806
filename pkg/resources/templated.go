// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// AnnotationTemplated on the client Service names the labels and annotations that it
// has from its template. Those that the template has no more are taken away; those of
// others, such as the cloud's, are not.
const AnnotationTemplated = "etcd.database.coreos.com/templated"

const (
	templatedLabel      = "label:"
	templatedAnnotation = "annotation:"
)

// templated is the value of the annotation; empty if the template names none.
func templated(t *v1beta2.ServiceTemplate) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(t.Labels)) {
		names = append(names, templatedLabel+name)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Annotations)) {
		names = append(names, templatedAnnotation+name)
	}
	return strings.Join(names, ",")
}

// untemplated returns live without what it has from an earlier template and want has not,
// and whether there is such a thing.
func untemplated(live, want *corev1.Service) (*corev1.Service, bool) {
	record, found := live.Annotations[AnnotationTemplated]
	if !found {
		return live, false
	}
	svc, changed := live.DeepCopy(), false
	drop := func(from, keep map[string]string, name string) {
		if _, desired := keep[name]; desired {
			return
		}
		if _, there := from[name]; there {
			delete(from, name)
			changed = true
		}
	}
	for name := range strings.SplitSeq(record, ",") {
		if label, is := strings.CutPrefix(name, templatedLabel); is {
			drop(svc.Labels, want.Labels, label)
		} else if annotation, is := strings.CutPrefix(name, templatedAnnotation); is {
			drop(svc.Annotations, want.Annotations, annotation)
		}
	}
	drop(svc.Annotations, want.Annotations, AnnotationTemplated)
	return svc, changed
}
