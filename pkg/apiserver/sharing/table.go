// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package sharing

import "sync"

// table remembers values by their keys. It holds at most twice its limit of values, and forgets
// what was not used for the longest time. Package unique would forget a value as soon as no handle
// of it exists, and the fields of objects cannot hold handles.
type table[K comparable, V any] struct {
	limit int

	mu sync.Mutex
	// recent is filled up to the limit. Then it becomes old, and what was old is forgotten.
	recent, old map[K]V
}

func newTable[K comparable, V any](limit int) *table[K, V] {
	return &table[K, V]{limit: limit, recent: map[K]V{}}
}

// get returns the value of a key, and remembers the given value if there is none.
func (t *table[K, V]) get(key K, value V) V {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.recent[key]; ok {
		return known
	}
	if known, ok := t.old[key]; ok {
		value = known
	}
	if len(t.recent) >= t.limit {
		t.recent, t.old = make(map[K]V, t.limit), t.recent
	}
	t.recent[key] = value
	return value
}
