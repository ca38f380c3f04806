// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericstore

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

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
	timeout := func(text string) *v1beta2.ClusterSpec {
		return &v1beta2.ClusterSpec{Etcd: &v1beta2.EtcdOptions{ElectionTimeout: &v1beta2.Duration{Duration: time.Hour, Text: text}}}
	}
	if !isSameSpec(timeout("60m"), timeout("")) {
		t.Error("a duration that is written in another way is another declaration")
	}
	empty := &v1beta2.ClusterSpec{Etcd: &v1beta2.EtcdOptions{ExtraArgs: []string{}}}
	if !isSameSpec(empty, &v1beta2.ClusterSpec{Etcd: &v1beta2.EtcdOptions{}}) {
		t.Error("no arguments and an empty list of them differ")
	}
}

// largeSpec is a spec with a pod policy and many variables.
func largeSpec() *v1beta2.ClusterSpec {
	policy := &v1beta2.PodPolicy{NodeSelector: map[string]string{}, Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi")},
	}}
	for i := range 20 {
		name := fmt.Sprintf("NAME_%d", i)
		policy.NodeSelector[name] = "value"
		policy.EtcdEnv = append(policy.EtcdEnv, corev1.EnvVar{Name: name, Value: "value"})
	}
	return &v1beta2.ClusterSpec{Version: "3.6.16", Replicas: ptr.To[int32](3), Pod: policy}
}

func TestSpecsAreComparedByContent(t *testing.T) {
	t.Parallel()
	for range 20 { // The order of maps is random.
		if !hasSameEncoding(largeSpec(), largeSpec()) {
			t.Fatal("equal specs have different encodings")
		}
	}
	for name, change := range map[string]func(*v1beta2.ClusterSpec){
		"version":  func(s *v1beta2.ClusterSpec) { s.Version = "3.6.15" },
		"no size":  func(s *v1beta2.ClusterSpec) { s.Replicas = nil },
		"variable": func(s *v1beta2.ClusterSpec) { s.Pod.EtcdEnv[19].Value = "other" },
		"selector": func(s *v1beta2.ClusterSpec) { delete(s.Pod.NodeSelector, "NAME_3") },
		"quantity": func(s *v1beta2.ClusterSpec) { s.Pod.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1") },
	} {
		changed := largeSpec()
		change(changed)
		if isSameSpec(changed, largeSpec()) || isSameSpec(largeSpec(), changed) {
			t.Errorf("another %s is the same spec", name)
		}
	}
}

func BenchmarkSameSpec(b *testing.B) {
	for name, compare := range map[string]func(a, b any) bool{"encodings": isSameSpec, "reflection": specEqualities.DeepEqual} {
		b.Run(name, func(b *testing.B) {
			x, y := largeSpec(), largeSpec()
			b.ReportAllocs()
			for b.Loop() {
				if !compare(x, y) {
					b.Fatal("different")
				}
			}
		})
	}
}
