// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestBackoffDoublesWithEachFailureAndKeepsTheRejectedName(t *testing.T) {
	t.Parallel()
	var b CreationBackoff
	key, now, full := types.NamespacedName{Name: "c"}, time.Unix(1000, 0), errors.New("full")
	if left, err := b.Blocked(key, now); left != 0 || err != nil {
		t.Fatalf("before any failure: blocked for %v by %v", left, err)
	}
	for i, want := range []time.Duration{0, backoffFirst, 2 * backoffFirst, 4 * backoffFirst, 8 * backoffFirst, backoffMax, backoffMax} {
		if first := b.Failed(key, now, "quota", "c-x", full); first != (i == 0) {
			t.Errorf("failure %d: first is %t", i, first)
		}
		left, err := b.Blocked(key, now)
		if left != want || (want > 0) != errors.Is(err, full) {
			t.Errorf("failure %d: blocked for %v by %v, want %v", i, left, err, want)
		}
		now = now.Add(want)
	}
	if got := b.PodName(key, "c-fresh"); got != "c-x" {
		t.Errorf("after a rejection the next pod is called %s, want the rejected name c-x", got)
	}
	b.UseName(key)
	if got := b.PodName(key, "c-fresh"); got != "c-fresh" {
		t.Errorf("after the name was used the next pod is called %s, want c-fresh", got)
	}
	if !b.Failed(key, now, "policy", "", errors.New("forbidden")) {
		t.Error("a failure for another reason is not the first of its kind")
	}
	now = now.Add(backoffReset + time.Second)
	if !b.Failed(key, now, "quota", "", full) {
		t.Error("a failure after the reset does not count as the first")
	}
	b.Failed(key, now, "quota", "", full)
	if left, _ := b.Blocked(key, now.Add(-3*time.Hour)); left != 0 {
		t.Errorf("after the clock was set back: blocked for %v", left)
	}
	if !b.Failed(key, now.Add(-3*time.Hour), "quota", "", full) {
		t.Error("a failure after the clock was set back does not count as the first")
	}
	b.Forget(key)
	if left, _ := b.Blocked(key, now); left != 0 || len(b.clusters) != 0 {
		t.Errorf("after Forget: blocked for %v", left)
	}
}

func TestBackoffCountsAFailedPodOnce(t *testing.T) {
	t.Parallel()
	var b CreationBackoff
	key, now := types.NamespacedName{Name: "c"}, time.Unix(1000, 0)
	evicted := errors.New("Evicted: the node was low on memory")
	if !b.PodFailed(key, now, "uid-1", evicted) || b.PodFailed(key, now, "uid-1", evicted) {
		t.Error("the first pod does not count exactly once")
	}
	if left, _ := b.Blocked(key, now); left != 0 {
		t.Errorf("after one failed pod: blocked for %v", left)
	}
	b.PodFailed(key, now, "uid-2", evicted)
	if left, got := b.Blocked(key, now); left != backoffFirst || !errors.Is(got, evicted) {
		t.Errorf("after two failed pods: blocked for %v by %v", left, got)
	}
}
