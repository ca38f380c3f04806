// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
)

// routineShare is how many urgent keys go before one that is not, while both wait: a flood
// of changes delays the periodic looks and does not end them.
const routineShare = 8

// order hands out keys. Keys with a change, or with a step that was just done, go before
// keys that are due for a periodic look.
type order[T comparable] struct {
	// mu guards urgent: keys are marked by other goroutines than the queue's.
	mu     sync.Mutex
	urgent map[T]bool

	first, routine []T
	// inRow counts the urgent keys since the last routine one.
	inRow int
}

var _ workqueue.Queue[int] = &order[int]{}

func newOrder[T comparable]() *order[T] { return &order[T]{urgent: map[T]bool{}} }

// urge marks a key that is about to be put on the queue. The mark lasts until the key is
// handed out.
func (o *order[T]) urge(key T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.urgent[key] = true
}

func (o *order[T]) isUrgent(key T) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.urgent[key]
}

// Touch implements workqueue.Queue: a key that waits as routine moves up.
func (o *order[T]) Touch(key T) {
	if !o.isUrgent(key) {
		return
	}
	if i := slices.Index(o.routine, key); i >= 0 {
		o.routine = slices.Delete(o.routine, i, i+1)
		o.first = append(o.first, key)
	}
}

// Push implements workqueue.Queue.
func (o *order[T]) Push(key T) {
	if o.isUrgent(key) {
		o.first = append(o.first, key)
	} else {
		o.routine = append(o.routine, key)
	}
}

// Len implements workqueue.Queue.
func (o *order[T]) Len() int { return len(o.first) + len(o.routine) }

// Pop implements workqueue.Queue.
func (o *order[T]) Pop() T {
	from := &o.first
	if len(o.first) == 0 || len(o.routine) > 0 && o.inRow >= routineShare {
		from, o.inRow = &o.routine, 0
	} else {
		o.inRow++
	}
	key := (*from)[0]
	var zero T
	(*from)[0] = zero // what is behind the slice is kept until it grows
	*from = (*from)[1:]
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.urgent, key)
	return key
}
