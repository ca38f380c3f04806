// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
)

func pod(rv string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: rv}}
}

func TestGateHoldsBackUntilTheCacheShowsTheLastWrite(t *testing.T) {
	t.Parallel()
	pods, services := "5", "90"
	gate := reconcile.NewGate(map[string]func() string{
		reconcile.KindOf(&corev1.Pod{}):     func() string { return pods },
		reconcile.KindOf(&corev1.Service{}): func() string { return services },
	})
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	other := types.NamespacedName{Namespace: "ns", Name: "b"}
	if !gate.IsReady(key) {
		t.Fatal("held back before any write")
	}
	gate.Note(key, pod("10"))
	gate.Note(key, pod("9")) // an older write that was noted later changes nothing
	for _, step := range []struct {
		pods string
		want bool
	}{{"5", false}, {"9", false}, {"10", true}, {"11", true}} {
		pods = step.pods
		if got := gate.IsReady(key); got != step.want {
			t.Errorf("cache at %s: ready is %t, want %t", pods, got, step.want)
		}
	}
	pods = "1"
	if !gate.IsReady(key) {
		t.Error("held back by a write that the cache has shown before")
	}

	gate.Note(key, pod("100"))
	if !gate.IsReady(other) {
		t.Error("held back by another key's write")
	}
	gate.Forget(key)
	if !gate.IsReady(key) {
		t.Error("held back by a write that was forgotten")
	}
	gate.Note(key, &corev1.Service{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "91"}})
	if gate.IsReady(key) {
		t.Error("not held back by a Service that the cache does not show")
	}
	services = "1000" // longer numbers are newer, whatever their first digit
	if !gate.IsReady(key) {
		t.Error("resource versions were not compared as numbers")
	}
}

// TestGateForgetsWritesWhenAnAPIIsRolledBack: after an API was restored from its own backup
// the gate does not wait for earlier versions, which may never come.
func TestGateForgetsWritesWhenAnAPIIsRolledBack(t *testing.T) {
	t.Parallel()
	pods, services := "500", "500"
	gate := reconcile.NewGate(map[string]func() string{
		reconcile.KindOf(&corev1.Pod{}):     func() string { return pods },
		reconcile.KindOf(&corev1.Service{}): func() string { return services },
	})
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	gate.Note(key, pod("510"))
	gate.Note(key, &corev1.Service{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "501"}})
	if gate.IsReady(key) {
		t.Fatal("not held back by its own writes")
	}
	pods = "20"
	if gate.IsReady(key) {
		t.Error("not held back by a Service whose API was not rolled back")
	}
	services = "501"
	if !gate.IsReady(key) {
		t.Error("held back by a version from before the rollback")
	}
	gate.Note(key, pod("21"))
	if gate.IsReady(key) {
		t.Error("not held back by a write after the rollback")
	}
	pods = "21"
	if !gate.IsReady(key) {
		t.Error("held back although the cache shows the write")
	}
}
