// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Tasks is the Background of a real controller: each task is a goroutine.
type Tasks struct {
	enqueue func(types.NamespacedName)

	mu    sync.Mutex
	last  map[types.NamespacedName]*task
	ctx   context.Context //nolint:containedctx // a task outlives the call that starts it and ends with Run
	group sync.WaitGroup
}

type task struct {
	id   string
	done bool
	err  error
}

// NewTasks returns a Background that calls enqueue when a task has ended. Nothing
// starts before Run.
func NewTasks(enqueue func(types.NamespacedName)) *Tasks {
	return &Tasks{enqueue: enqueue, last: map[types.NamespacedName]*task{}}
}

// Run lets tasks run until ctx ends, and returns when they have ended.
func (t *Tasks) Run(ctx context.Context) {
	t.mu.Lock()
	t.ctx = ctx
	t.mu.Unlock()
	<-ctx.Done()
	t.mu.Lock()
	t.ctx = nil
	t.mu.Unlock()
	t.group.Wait()
}

// Start implements Background. Before Run and after its end nothing is started; the
// next reconcile tries again.
func (t *Tasks) Start(key types.NamespacedName, id string, do func(context.Context) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last := t.last[key]; t.ctx == nil || (last != nil && !last.done) {
		return
	}
	started := &task{id: id}
	t.last[key] = started
	ctx := t.ctx
	t.group.Go(func() {
		err := do(ctx)
		t.mu.Lock()
		started.done, started.err = true, err
		t.mu.Unlock()
		t.enqueue(key)
	})
}

// Last implements Background.
func (t *Tasks) Last(key types.NamespacedName) (id string, done bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.last[key]
	if last == nil {
		return "", false, nil
	}
	return last.id, last.done, last.err
}

// Forget implements Background.
func (t *Tasks) Forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.last, key)
}
