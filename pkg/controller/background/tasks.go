// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package background

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/share"
)

// maxTasks is how many tasks run at the same time. Each of them is a defragmentation,
// which is hard work for the disk under its member; clusters may share disks.
const maxTasks = 16

// Tasks runs the background tasks of a real controller, each in a goroutine.
type Tasks struct {
	enqueue func(types.NamespacedName)

	mu    sync.Mutex
	last  map[types.NamespacedName]*task
	queue *share.Queue
	ctx   context.Context //nolint:containedctx // a task outlives the call that starts it and ends with Run
	group sync.WaitGroup
}

type task struct {
	id   string
	done bool
	err  error
}

// New returns a Background that calls enqueue when a task has ended. Nothing
// starts before Run.
func New(divide func(total int) share.Places, enqueue func(types.NamespacedName)) *Tasks {
	return &Tasks{enqueue: enqueue, last: map[types.NamespacedName]*task{}, queue: share.NewQueue(divide(maxTasks))}
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

// Start implements cluster.Background. Before Run and after its end nothing is started, nor while
// there is no place for it; the next reconcile tries again. It comes when there is one.
func (t *Tasks) Start(key types.NamespacedName, id string, do func(context.Context) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last := t.last[key]; t.ctx == nil || (last != nil && !last.done) {
		return
	}
	if t.queue.Start(share.Work{Key: key, Cluster: key}) != share.Nothing {
		return
	}
	started := &task{id: id}
	t.last[key] = started
	ctx := t.ctx
	t.group.Go(func() {
		next := t.finish(key, started, do(ctx))
		t.enqueue(key)
		for _, waiting := range next {
			t.enqueue(waiting)
		}
	})
}

// Lack implements cluster.Background.
func (t *Tasks) Lack(key types.NamespacedName) share.Lack {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last := t.last[key]; t.ctx == nil || (last != nil && !last.done) {
		return share.Nothing
	}
	return t.queue.Lack(share.Work{Key: key, Cluster: key})
}

// finish records how a task has ended and returns the clusters that may start one now. They wait no longer: one whose
// operation was cancelled meanwhile holds no place.
func (t *Tasks) finish(key types.NamespacedName, ended *task, err error) []types.NamespacedName {
	t.mu.Lock()
	defer t.mu.Unlock()
	ended.done, ended.err = true, err
	t.queue.End(key)
	next := t.queue.Next()
	for _, waiting := range next {
		t.queue.End(waiting)
	}
	return next
}

// Last implements cluster.Background.
func (t *Tasks) Last(key types.NamespacedName) (id string, done bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.last[key]
	if last == nil {
		return "", false, nil
	}
	return last.id, last.done, last.err
}

// Forget implements cluster.Background.
func (t *Tasks) Forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last := t.last[key]; last == nil || last.done {
		t.queue.End(key) // a task that runs keeps its place until it ends
	}
	delete(t.last, key)
}
