// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestLateKubelet changes the image of a pod: it is called ready for a while because of
// the container before, and must not be taken for ready.
func TestLateKubelet(t *testing.T) {
	c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "uid"}, Spec: v1beta2.ClusterSpec{Version: "3.6.11"}}
	pod := resources.Pod(c, resources.MemberPod{Name: "c-a"})
	report := func(id string) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: resources.ContainerName, ContainerID: id, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}
	}
	check := func(when string, ready, restarting bool) {
		t.Helper()
		if o := observedPod(c, pod); o.Ready != ready || o.Restarting != restarting {
			t.Errorf("%s: ready %t, restarting %t", when, o.Ready, o.Restarting)
		}
	}
	report("containerd://old")
	check("at rest", true, false)
	c.Spec.Version = "3.6.16"
	pod, _ = resources.WithVersion(c, pod)
	check("with another image", false, true)
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}
	check("without a container", false, false)
	report("containerd://new")
	check("with a container of its own", true, false)
}
