// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/controller/apiclock"
)

// heldLong is how long a gate holds a key back before the live object is compared. A cache shows a write
// within a second, unless its watch hangs.
const heldLong = 10 * time.Second

// Held finds the keys that a gate holds back for a write that no cache will ever show. The zero value is ready.
type Held struct {
	mu    sync.Mutex
	since map[types.NamespacedName]time.Time
}

// IsReady is true if the gate is ready. If it was not for long, it is compared with the live object of the
// key, and may be ready at the next look. What the caller has read from the caches may be old after a request
// to the API. An error says that the live object could not be read.
func (h *Held) IsReady(gate Gate, key types.NamespacedName, now time.Time, live func() (metav1.Object, error)) (bool, error) {
	if gate.IsReady(key) {
		h.Forget(key)
		return true, nil
	}
	if !h.isLong(key, now) {
		return false, nil
	}
	object, err := live()
	if apierrors.IsNotFound(err) {
		return false, nil // the cache will show that it was deleted
	}
	if err != nil {
		return false, fmt.Errorf("read %s from the API, as the cache does not show the last write: %w", key, err)
	}
	gate.Compare(key, object)
	return false, nil
}

// isLong is true if the key was held back since long before now.
func (h *Held) isLong(key types.NamespacedName, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since == nil {
		h.since = map[types.NamespacedName]time.Time{}
	}
	since, found := h.since[key]
	if !found {
		h.since[key] = now
		return false
	}
	return apiclock.IsOver(since, now, heldLong)
}

// Forget is for a key that is not held back any more, or whose object no longer exists.
func (h *Held) Forget(key types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.since, key)
}
