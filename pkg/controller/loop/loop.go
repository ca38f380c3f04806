// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/controller/metrics"
)

const (
	// retryBase and retryMax bound the back-off after an error.
	retryBase = 50 * time.Millisecond
	retryMax  = 30 * time.Second
)

// maxWaiting bounds the reconciles that wait for something outside, and with them the
// memory that they take. It is far above the number of workers.
const maxWaiting = 256

// ReconcileFunc moves the object called key a step on. It returns when to be called
// again if nothing happens before (0: not at all).
type ReconcileFunc func(ctx context.Context, key types.NamespacedName) (time.Duration, error)

// Loop is a queue of keys and the workers that empty it. A key is never worked on
// by two workers at once. A reconcile that waits in Aside occupies no worker. Keys of
// which something has changed go first.
type Loop struct {
	name      string
	reconcile ReconcileFunc
	queue     workqueue.TypedRateLimitingInterface[types.NamespacedName]
	order     *order
	clock     clock.WithTicker
	punctual  bool
}

// New returns a loop that has not been started.
func New(name string, c clock.WithTicker, reconcile ReconcileFunc) *Loop {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryBase, retryMax)
	order := newOrder()
	return &Loop{
		name:      name,
		reconcile: reconcile,
		clock:     c,
		order:     order,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{
			Name: name, Clock: c,
			DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.NamespacedName]{
				Name: name, Clock: c,
				Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.NamespacedName]{Name: name, Clock: c, Queue: order}),
			}),
		}),
	}
}

// Punctual makes the loop call back at the requested time, for objects that have a
// schedule. Other loops may call back up to a fifth later. Punctual must be called before
// Run.
func (l *Loop) Punctual() *Loop {
	l.punctual = true
	return l
}

// Enqueue puts a key on the queue because something has changed: it goes before those that
// are only looked at again.
func (l *Loop) Enqueue(key types.NamespacedName) {
	l.order.urge(key)
	l.queue.Add(key)
}

// Run reconciles with that many workers, and returns when ctx ends and each reconcile has
// finished what it was doing.
func (l *Loop) Run(ctx context.Context, workers int) {
	defer context.AfterFunc(ctx, l.queue.ShutDown)()
	var group sync.WaitGroup
	defer group.Wait()
	begun, places := make(chan struct{}, workers+maxWaiting), make(chan struct{}, workers)
	for {
		begun <- struct{}{}
		key, shutdown := l.queue.Get()
		if shutdown {
			return
		}
		// The key waits here for a worker, not in the queue: one that holds a worker while
		// the queue is empty would keep it from those that come back from Aside.
		place := newPlace(places)
		group.Go(func() {
			defer func() { <-begun }()
			defer place.leave()
			defer utilruntime.HandleCrashWithContext(ctx)
			l.work(context.WithValue(ctx, placeKey{}, place), key)
		})
	}
}

func (l *Loop) work(ctx context.Context, key types.NamespacedName) {
	defer l.queue.Done(key)
	if ctx.Err() != nil {
		return
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "kind", l.name, "object", klog.KRef(key.Namespace, key.Name))
	start := l.clock.Now()
	after, err := l.reconcileOne(klog.NewContext(ctx, logger), key)
	metrics.ObserveReconcile(l.name, l.clock.Since(start), err)
	switch {
	case err != nil:
		if ctx.Err() == nil {
			utilruntime.HandleErrorWithLogger(logger, err, "Reconciling failed and is tried again")
		}
		l.queue.AddRateLimited(key)
	case after > 0:
		l.queue.Forget(key)
		if after < soon {
			l.order.urge(key) // the next step of what is being done
		}
		if !l.punctual {
			after = jitter(after)
		}
		l.queue.AddAfter(key, after)
	default:
		l.queue.Forget(key)
	}
}

// errPanic is a defect of this program that one object brought to light.
var errPanic = errors.New("panic")

// reconcileOne makes a panic an error of that object. Otherwise one object of one tenant would end the program again and
// again, and the objects of the others would have no controller.
func (l *Loop) reconcileOne(ctx context.Context, key types.NamespacedName) (after time.Duration, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: %v\n%s", errPanic, cause, debug.Stack())
		}
	}()
	return l.reconcile(ctx, key)
}

// soon is what a wait is below that belongs to a step under way.
const soon = time.Second

// jitter spreads clusters that were started together; short waits stay as they are.
func jitter(d time.Duration) time.Duration {
	if d < soon {
		return d
	}
	return wait.Jitter(d, 0.2)
}

// Feed makes an informer put keys on the queue of the loop. keyOf returns false for
// objects that concern no key.
func (l *Loop) Feed(informer cache.SharedIndexInformer, keyOf func(metav1.Object) (types.NamespacedName, bool)) error {
	enqueue := func(object any) {
		if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		meta, ok := object.(metav1.Object)
		if !ok {
			return
		}
		if key, concerned := keyOf(meta); concerned {
			l.Enqueue(key)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
		DeleteFunc: enqueue,
	})
	if err != nil {
		return fmt.Errorf("feed queue %s: %w", l.name, err)
	}
	return nil
}
