// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestEndpoints: the prober connects to members at the address of their pod, of either family.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n"}}
	pod := func(name, ip string, phase corev1.PodPhase) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{PodIP: ip, Phase: phase}}
	}
	got := endpointsOf(c, []corev1.Pod{
		pod("c-b", "fd00::7", corev1.PodRunning), pod("c-a", "10.0.0.7", corev1.PodRunning),
		pod("c-c", "", corev1.PodPending), pod("c-d", "10.0.0.8", corev1.PodFailed),
	})
	if len(got) != 2 || got[0].Address != "10.0.0.7:2379" || got[1].Address != "[fd00::7]:2379" || got[1].URL != "http://c-b.c.n.svc:2379" {
		t.Errorf("the endpoints are %+v", got)
	}
}
