// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/etcd-operator/etcd-operator/pkg/share"
)

// routineShare is how many urgent keys go before one that is not, while both wait: a flood
// of changes delays the periodic looks and does not end them.
const routineShare = 8

// order hands out keys. Keys with a change, or with a step that was just done, go before
// keys that are due for a periodic look. Among these and among those, namespaces take turns.
type order struct {
	// mu guards urgent: keys are marked by other goroutines than the queue's.
	mu     sync.Mutex
	urgent map[types.NamespacedName]bool

	first, routine share.Turns
	// inRow counts the urgent keys since the last routine one.
	inRow int
}

var _ workqueue.Queue[types.NamespacedName] = &order{}

func newOrder() *order { return &order{urgent: map[types.NamespacedName]bool{}} }

// urge marks a key that is about to be put on the queue. The mark lasts until the key is
// handed out.
func (o *order) urge(key types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.urgent[key] = true
}

func (o *order) isUrgent(key types.NamespacedName) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.urgent[key]
}

// Touch implements workqueue.Queue: a key that waits as routine moves up.
func (o *order) Touch(key types.NamespacedName) {
	if !o.isUrgent(key) {
		return
	}
	if o.routine.Remove(key) {
		o.first.Push(key)
	}
}

// Push implements workqueue.Queue.
func (o *order) Push(key types.NamespacedName) {
	if o.isUrgent(key) {
		o.first.Push(key)
	} else {
		o.routine.Push(key)
	}
}

// Len implements workqueue.Queue.
func (o *order) Len() int { return o.first.Len() + o.routine.Len() }

// Pop implements workqueue.Queue.
func (o *order) Pop() types.NamespacedName {
	from := &o.first
	if o.first.Len() == 0 || o.routine.Len() > 0 && o.inRow >= routineShare {
		from, o.inRow = &o.routine, 0
	} else {
		o.inRow++
	}
	key := from.Pop()
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.urgent, key)
	return key
}
