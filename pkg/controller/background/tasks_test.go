// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package background

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/share"
)

func undivided(total int) share.Places { return share.Places{Total: total, Undivided: true} }

func TestTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testTasks)
}

func testTasks(t *testing.T) {
	key, other := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	ended := make(chan types.NamespacedName, 4)
	tasks := New(undivided, func(k types.NamespacedName) { ended <- k })
	tasks.Start(key, "before run", func(context.Context) error { return nil })
	if id, _, _ := tasks.Last(key); id != "" {
		t.Errorf("task %s was started before Run", id)
	}

	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { tasks.Run(ctx); close(over) }()
	synctest.Wait() // until it runs

	release, failed := make(chan struct{}), errors.New("no")
	tasks.Start(key, "1", func(context.Context) error { <-release; return failed })
	tasks.Start(key, "2", func(context.Context) error { t.Error("two tasks of one cluster at once"); return nil })
	if id, done, err := tasks.Last(key); id != "1" || done || err != nil {
		t.Errorf("a running task: %s %t %v", id, done, err)
	}
	tasks.Start(other, "3", func(context.Context) error { return nil })
	if got := <-ended; got != other {
		t.Errorf("%v was put on the queue, want %v", got, other)
	}
	close(release)
	if got := <-ended; got != key {
		t.Errorf("%v was put on the queue, want %v", got, key)
	}
	if id, done, err := tasks.Last(key); id != "1" || !done || !errors.Is(err, failed) {
		t.Errorf("a task that has ended: %s %t %v", id, done, err)
	}

	tasks.Start(key, "4", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	cancel()
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Fatal("Run does not end")
	}
	if id, done, err := tasks.Last(key); id != "4" || !done || !errors.Is(err, context.Canceled) {
		t.Errorf("a task that was ended: %s %t %v", id, done, err)
	}
	tasks.Start(key, "5", func(context.Context) error { t.Error("a task after the end"); return nil })
	tasks.Forget(key)
	if id, _, _ := tasks.Last(key); id != "" {
		t.Errorf("task %s was not forgotten", id)
	}
}

// TestTasksAreBounded: a cluster for which there is no room is woken when there is room, in
// its turn.
func TestTasksAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const clusters = maxTasks + 2
		woken := make(chan types.NamespacedName, 3*clusters)
		tasks := New(undivided, func(k types.NamespacedName) { woken <- k })
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { tasks.Run(ctx); close(over) }()
		synctest.Wait()
		release := make(chan struct{})
		started := 0
		var mu sync.Mutex
		start := func(i int) types.NamespacedName {
			key := types.NamespacedName{Name: strconv.Itoa(i)}
			tasks.Start(key, "t", func(context.Context) error {
				mu.Lock()
				started++
				mu.Unlock()
				<-release
				return nil
			})
			synctest.Wait()
			return key
		}
		for range 2 { // as often as the cluster is looked at
			for i := range clusters {
				start(i)
			}
		}
		if started != maxTasks {
			t.Errorf("%d tasks run at once", started)
		}
		gone := types.NamespacedName{Name: strconv.Itoa(maxTasks)}
		tasks.Forget(gone)
		release <- struct{}{}
		synctest.Wait()
		ended, next := <-woken, <-woken
		if next != (types.NamespacedName{Name: strconv.Itoa(maxTasks + 1)}) {
			t.Errorf("%v has ended and %v is woken", ended, next)
		}
		start(maxTasks + 1)
		if started != maxTasks+1 {
			t.Errorf("%d tasks were started", started)
		}
		close(release)
		cancel()
		<-over
	})
}

// TestShareOfANamespace: a namespace with many defragmentations leaves places for those of others.
func TestShareOfANamespace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		woken := make(chan types.NamespacedName, 3*maxTasks)
		tasks := New(share.Divided, func(k types.NamespacedName) { woken <- k })
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { tasks.Run(ctx); close(over) }()
		synctest.Wait()
		release := map[string]chan struct{}{"greedy": make(chan struct{}), "honest": make(chan struct{})}
		for i := range 2 * maxTasks {
			tasks.Start(types.NamespacedName{Namespace: "greedy", Name: strconv.Itoa(i)}, "t", func(context.Context) error { <-release["greedy"]; return nil })
		}
		honest := types.NamespacedName{Namespace: "honest", Name: "a"}
		tasks.Start(honest, "t", func(context.Context) error { <-release["honest"]; return nil })
		running := 0
		for i := range 2 * maxTasks {
			if id, _, _ := tasks.Last(types.NamespacedName{Namespace: "greedy", Name: strconv.Itoa(i)}); id != "" {
				running++
			}
		}
		if lack := tasks.Lack(types.NamespacedName{Namespace: "greedy", Name: strconv.Itoa(2*maxTasks - 1)}); lack != share.OfNamespace {
			t.Errorf("of what the greedy namespace needs lacks %d", lack)
		}
		for range 2 * maxTasks { // looking takes no place
			if lack := tasks.Lack(types.NamespacedName{Namespace: "third", Name: "a"}); lack != share.Nothing {
				t.Errorf("of what a third namespace needs lacks %d", lack)
			}
		}
		if id, _, _ := tasks.Last(honest); id == "" || running != maxTasks/2 {
			t.Errorf("%d tasks of the greedy namespace run, and %q of the other", running, id)
		}
		close(release["honest"])
		synctest.Wait()
		if got := <-woken; got != honest || len(woken) != 0 {
			t.Errorf("%s is woken, and %d more: the share of the greedy namespace is taken", got, len(woken))
		}
		close(release["greedy"])
		cancel()
		<-over
	})
}
