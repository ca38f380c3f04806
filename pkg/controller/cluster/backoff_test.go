// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestFailuresBackOff(t *testing.T) {
	t.Parallel()
	var f failures
	key, now, full := types.NamespacedName{Name: "c"}, time.Unix(1000, 0), errors.New("full")
	if left, err := f.blocked(key, now); left != 0 || err != nil {
		t.Fatalf("blocked for %v by %v before anything failed", left, err)
	}
	for i, want := range []time.Duration{0, backoffFirst, 2 * backoffFirst, 4 * backoffFirst, 8 * backoffFirst, backoffMost, backoffMost} {
		if first := f.note(key, now, "quota", "c-x", full); first != (i == 0) {
			t.Errorf("failure %d: first %t", i, first)
		}
		left, err := f.blocked(key, now)
		if left != want || (want > 0) != errors.Is(err, full) {
			t.Errorf("failure %d: blocked for %v by %v, want %v", i, left, err, want)
		}
		now = now.Add(want)
	}
	if got := f.name(key, "c-fresh"); got != "c-x" {
		t.Errorf("the next pod is called %s; a name that was rejected is free", got)
	}
	f.used(key)
	if got := f.name(key, "c-fresh"); got != "c-fresh" {
		t.Errorf("the next pod is called %s after that name was used", got)
	}
	if !f.note(key, now, "policy", "", errors.New("forbidden")) {
		t.Error("another reason is not the first of its kind")
	}
	now = now.Add(backoffForget + time.Second)
	if !f.note(key, now, "quota", "", full) {
		t.Error("a failure long ago still counts")
	}
	f.forget(key)
	if left, _ := f.blocked(key, now); left != 0 || len(f.clusters) != 0 {
		t.Errorf("blocked for %v after the cluster was deleted", left)
	}
}

func TestOneFailedPodCountsOnce(t *testing.T) {
	t.Parallel()
	var f failures
	key, now := types.NamespacedName{Name: "c"}, time.Unix(1000, 0)
	err := podFailed("c-a", "Evicted: the node was low on memory")
	if !f.noteFailed(key, now, "uid-1", err) || f.noteFailed(key, now, "uid-1", err) {
		t.Error("the first pod does not count exactly once")
	}
	if left, _ := f.blocked(key, now); left != 0 {
		t.Errorf("blocked for %v after one failure", left)
	}
	f.noteFailed(key, now, "uid-2", err)
	if left, got := f.blocked(key, now); left != backoffFirst || !errors.Is(got, ErrPodFailed) {
		t.Errorf("blocked for %v by %v", left, got)
	}
}
