// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
)

// TestHeldKeyIsComparedWithTheLiveObject: a cache that was behind when its API was restored shows the same
// version as before, and never the write that the gate waits for.
func TestHeldKeyIsComparedWithTheLiveObject(t *testing.T) {
	t.Parallel()
	pods, services := "5", "5"
	gate := reconcile.NewGate(map[string]func() string{
		reconcile.KindOf(&corev1.Pod{}):     func() string { return pods },
		reconcile.KindOf(&corev1.Service{}): func() string { return services },
	})
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	var held reconcile.Held
	reads, live, failure := 0, "7", error(nil)
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	check := func(after time.Duration, wantReady bool, wantReads int) {
		t.Helper()
		ready, err := held.IsReady(gate, key, now.Add(after), func() (metav1.Object, error) {
			reads++
			return pod(live), failure
		})
		if ready != wantReady || reads != wantReads || (err != nil) != (failure != nil && !apierrors.IsNotFound(failure)) {
			t.Errorf("after %v: ready %t, want %t; %d reads, want %d; error %v", after, ready, wantReady, reads, wantReads, err)
		}
	}
	check(0, true, 0)
	gate.Note(key, pod("7"))
	check(time.Second, false, 0)
	check(time.Second+9*time.Second, false, 0)
	check(time.Second+10*time.Second, false, 1) // the API has the write, and the cache is late
	failure = errors.New("denied")
	check(12*time.Second, false, 2)
	failure = apierrors.NewNotFound(corev1.Resource("pods"), "a")
	check(13*time.Second, false, 3)
	failure, live = nil, "5"
	check(14*time.Second, false, 4)
	check(15*time.Second, true, 4)

	gate.Note(key, pod("8"))
	gate.Note(key, &corev1.Service{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}})
	check(20*time.Second, false, 4) // the wait begins again
	check(31*time.Second, false, 5) // the API lost the write of the pod only
	services = "9"
	check(32*time.Second, true, 5)

	gate.Note(key, pod("9"))
	check(40*time.Second, false, 5)
	check(-3*time.Hour, false, 6) // the clock was set back
}
