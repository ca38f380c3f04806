// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestLivenessOutlastsDefragmentation: a member is not restarted while it defragments as
// large a database as its quota allows, and one that hangs always is in the end.
func TestLivenessOutlastsDefragmentation(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		quota    string
		failures int32
	}{
		{"", livenessFailures},
		{"0", livenessFailures},
		{"100Mi", livenessFailures},
		{"2Gi", livenessFailures},
		{"8Gi", 28},
		{"16Gi", 55},
		{"100Gi", 120},
		{"7Ei", 120},
	} {
		c := &v1beta2.EtcdCluster{Spec: v1beta2.ClusterSpec{Version: "3.6.16"}}
		if test.quota != "" {
			c.Spec.Etcd = &v1beta2.EtcdOptions{QuotaBackendBytes: ptr.To(resource.MustParse(test.quota))}
		}
		var container corev1.Container
		addProbes(c, &container)
		if got := container.LivenessProbe.FailureThreshold; got != test.failures {
			t.Errorf("quota %q: %d failures, want %d", test.quota, got, test.failures)
		}
	}
}

// TestHungMemberIsKnownInTime: the pod of a member that hangs right after a probe is unready
// within 8 s. The controller then needs 2 s to know why.
func TestHungMemberIsKnownInTime(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3.3.27", "3.4.20", "3.5.4", "3.5.35", "3.6.16", "3.7.3"} {
		c := &v1beta2.EtcdCluster{Spec: v1beta2.ClusterSpec{Version: version}}
		var container corev1.Container
		addProbes(c, &container)
		p := container.ReadinessProbe
		if s := p.PeriodSeconds + p.FailureThreshold*p.TimeoutSeconds; s >= 8 {
			t.Errorf("%s: unready after %d s", version, s)
		}
	}
}
