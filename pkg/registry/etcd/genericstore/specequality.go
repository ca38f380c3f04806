// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericstore

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
)

// specEqualities compares quantities by their text. Specs are compared before they are
// validated, and the value of a quantity with a hostile exponent takes hours to compute.
var specEqualities = conversion.EqualitiesOrDie(
	func(a, b resource.Quantity) bool { return a.String() == b.String() },
	func(a, b metav1.Time) bool { return a.UTC().Equal(b.UTC()) },
)

// isSameSpec is true if two specs are equal. A nil list equals an empty one.
func isSameSpec(a, b any) bool { return specEqualities.DeepEqual(a, b) }
