// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
)

// specEqualities compares quantities as they are written. Comparing their values
// would compute numbers of as many digits as a hostile exponent says, and specs are
// compared before they are validated.
var specEqualities = conversion.EqualitiesOrDie(
	func(a, b resource.Quantity) bool { return a.String() == b.String() },
	func(a, b metav1.Time) bool { return a.UTC().Equal(b.UTC()) },
)

// sameSpec is true if two specs mean the same; nil and empty lists do.
func sameSpec(a, b any) bool { return specEqualities.DeepEqual(a, b) }
