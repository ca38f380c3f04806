// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericstore

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// A quantity with an enormous exponent must not be computed: with a comparison by
// value this test runs for hours.
func TestSpecsAreComparedWithoutComputingQuantities(t *testing.T) {
	t.Parallel()
	spec := func(cpu string) *v1beta2.ClusterSpec {
		return &v1beta2.ClusterSpec{Pod: &v1beta2.PodPolicy{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		}}}
	}
	if isSameSpec(spec("1e999999999"), spec("1Gi")) {
		t.Error("1e999999999 is the same as 1Gi")
	}
	if !isSameSpec(spec("100m"), spec("100m")) {
		t.Error("100m is not the same as 100m")
	}
	empty := &v1beta2.ClusterSpec{Etcd: &v1beta2.EtcdOptions{ExtraArgs: []string{}}}
	if !isSameSpec(empty, &v1beta2.ClusterSpec{Etcd: &v1beta2.EtcdOptions{}}) {
		t.Error("no arguments and an empty list of them differ")
	}
}
