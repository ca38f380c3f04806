// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericstore

import (
	"bytes"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// specEqualities compares quantities by their text. Specs are compared before they are
// validated, and the value of a quantity with a hostile exponent takes hours to compute.
var specEqualities = conversion.EqualitiesOrDie(
	func(a, b resource.Quantity) bool { return a.String() == b.String() },
	func(a, b metav1.Time) bool { return a.UTC().Equal(b.UTC()) },
	// However they are written: another text is stored, and is no other declaration.
	func(a, b v1beta2.Duration) bool { return a.Duration == b.Duration },
)

// marshaler is a spec with an encoding, which does not depend on the order of maps.
type marshaler interface{ Marshal() ([]byte, error) }

// isSameSpec is true if two specs are equal. A nil list equals an empty one. Most updates do not
// change the spec, and comparing encodings is faster than comparing by reflection.
func isSameSpec(a, b any) bool {
	return hasSameEncoding(a, b) || specEqualities.DeepEqual(a, b)
}

func hasSameEncoding(a, b any) bool {
	first, ok := a.(marshaler)
	if !ok {
		return false
	}
	second, ok := b.(marshaler)
	if !ok {
		return false
	}
	x, err := first.Marshal()
	if err != nil {
		return false
	}
	y, err := second.Marshal()
	return err == nil && bytes.Equal(x, y)
}
