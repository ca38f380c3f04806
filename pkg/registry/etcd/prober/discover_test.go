// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

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

// TestListsAreBounded: a tenant labels pods as it likes. The result says that a list is not complete, and the members are
// found by their names.
func TestListsAreBounded(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientset()
	for _, resource := range []string{"pods", "persistentvolumeclaims"} {
		kube.PrependReactor("list", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
			list, ok := action.(clienttesting.ListActionImpl)
			if !ok || list.ListOptions.Limit != maxObjects {
				t.Errorf("%s are listed with %+v", resource, action)
			}
			more := metav1.ListMeta{Continue: "more"}
			if resource == "pods" {
				return true, &corev1.PodList{ListMeta: more}, nil
			}
			return true, &corev1.PersistentVolumeClaimList{ListMeta: more}, nil
		})
	}
	c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n"}}
	c.Status.MemberStatuses = []v1beta2.MemberStatus{{Name: "c-a"}}
	found, err := (&Prober{kube: kube}).Discover(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if found.PodsKnown || len(found.Target.Endpoints) != 1 || len(found.Problems) != 2 || !strings.Contains(found.Problems[0], "more than 256 pods have the labels of this cluster") {
		t.Errorf("found %+v", found)
	}
}
