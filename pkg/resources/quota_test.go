// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestQuotaOf: the quota is that with which the pod was made, wherever a user set it.
func TestQuotaOf(t *testing.T) {
	const headroom = 3<<19 + 512<<10 + 32<<10
	for name, test := range map[string]struct {
		options v1beta2.EtcdOptions
		env     []corev1.EnvVar
		want    Quota
	}{
		"default of etcd":     {want: Quota{2 << 30, headroom}},
		"declared":            {options: v1beta2.EtcdOptions{QuotaBackendBytes: ptr.To(resource.MustParse("8Gi"))}, want: Quota{8 << 30, headroom}},
		"small":               {options: v1beta2.EtcdOptions{QuotaBackendBytes: ptr.To(resource.MustParse("4Mi"))}, want: Quota{4 << 20, 1 << 20}},
		"larger requests":     {options: v1beta2.EtcdOptions{ExtraArgs: []string{"--max-request-bytes=10485760"}}, want: Quota{2 << 30, 10<<20 + 512<<10 + 32<<10}},
		"larger transactions": {options: v1beta2.EtcdOptions{ExtraArgs: []string{"--max-txn-ops=1024"}}, want: Quota{2 << 30, 2<<20 + 256<<10}},
		"environment":         {env: []corev1.EnvVar{{Name: "ETCD_QUOTA_BACKEND_BYTES", Value: "16777216"}}, want: Quota{16 << 20, headroom}},
		"declared and in the environment": {
			options: v1beta2.EtcdOptions{QuotaBackendBytes: ptr.To(resource.MustParse("8Gi"))},
			env:     []corev1.EnvVar{{Name: "ETCD_QUOTA_BACKEND_BYTES", Value: "16777216"}}, want: Quota{8 << 30, headroom},
		},
		"none":    {env: []corev1.EnvVar{{Name: "ETCD_QUOTA_BACKEND_BYTES", Value: "-1"}}, want: Quota{Bytes: math.MaxInt64}},
		"no text": {env: []corev1.EnvVar{{Name: "ETCD_QUOTA_BACKEND_BYTES", Value: "much"}}, want: Quota{2 << 30, headroom}},
	} {
		c := &v1beta2.EtcdCluster{}
		c.Name, c.Namespace, c.Spec.Version, c.Spec.Etcd = "c", "n", "3.6.16", &test.options
		c.Spec.Pod = &v1beta2.PodPolicy{EtcdEnv: test.env}
		for _, prepared := range []bool{false, true} {
			pod := Pod(c, MemberPod{Name: "c-a", Prepared: prepared, Image: "image"})
			pod.Spec.Containers = append([]corev1.Container{{Name: "injected"}}, pod.Spec.Containers...)
			if got := QuotaOf(pod); got != test.want {
				t.Errorf("%s: %+v, want %+v", name, got, test.want)
			}
		}
	}
	if got := QuotaOf(&corev1.Pod{}); got != (Quota{2 << 30, headroom}) {
		t.Errorf("a pod without etcd: %+v", got)
	}
}
