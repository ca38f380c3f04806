// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// largeCluster has a pod policy with many variables, and names no Secret.
func largeCluster() *v1beta2.EtcdCluster {
	cluster := &v1beta2.EtcdCluster{Spec: v1beta2.ClusterSpec{Version: "3.6.16", Pod: &v1beta2.PodPolicy{
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}},
	}}}
	for i := range 20 {
		cluster.Spec.Pod.EtcdEnv = append(cluster.Spec.Pod.EtcdEnv, corev1.EnvVar{Name: fmt.Sprintf("NAME_%d", i), Value: "value"})
	}
	return cluster
}

func BenchmarkNeedsOf(b *testing.B) {
	for name, old := range map[string]*v1beta2.EtcdCluster{"a new object": nil, "an update": largeCluster()} {
		b.Run(name, func(b *testing.B) {
			cluster := largeCluster()
			b.ReportAllocs()
			for b.Loop() {
				if old == nil {
					NeedsOf(cluster, nil)
				} else {
					NeedsOf(cluster, old)
				}
			}
		})
	}
}
