// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// awaitLimit bounds how long one endpoint is watched; the next observation renews
// the watch if it is still wanted.
const awaitLimit = 30 * time.Second

// awaited is an endpoint that does not serve yet, or that is about to end, and whom to
// tell when it does.
type awaited struct {
	key      types.NamespacedName
	target   etcd.Target
	endpoint etcd.Endpoint
	end      bool
}

// WaitFunc returns nil when something has come to pass at an endpoint.
type WaitFunc func(ctx context.Context, target etcd.Target, endpoint etcd.Endpoint) error

// ServingWaker calls back as soon as an endpoint serves, or serves no more, by asking
// the endpoint itself. It watches each endpoint once, however often it is asked to.
type ServingWaker struct {
	serving, ended WaitFunc

	enqueue func(types.NamespacedName)
	wanted  chan awaited

	mu      sync.Mutex
	watched map[string]bool
}

// NewServingWaker returns a waker that learns from serving that an endpoint serves and
// from ended that it does no more; nothing is watched before Run.
func NewServingWaker(serving, ended WaitFunc, enqueue func(types.NamespacedName)) *ServingWaker {
	return &ServingWaker{serving: serving, ended: ended, enqueue: enqueue, wanted: make(chan awaited, 64), watched: map[string]bool{}}
}

// Await implements Waker. It never blocks: with too many endpoints to watch the
// periodic look at the cluster has to do.
func (w *ServingWaker) Await(key types.NamespacedName, target etcd.Target, endpoint etcd.Endpoint) {
	w.want(awaited{key: key, target: target, endpoint: endpoint})
}

// AwaitEnd implements Waker. It never blocks either.
func (w *ServingWaker) AwaitEnd(key types.NamespacedName, target etcd.Target, endpoint etcd.Endpoint) {
	w.want(awaited{key: key, target: target, endpoint: endpoint, end: true})
}

func (w *ServingWaker) want(a awaited) {
	if !w.claim(a.id()) {
		return
	}
	select {
	case w.wanted <- a:
	default:
		w.release(a.id())
	}
}

// Run watches until ctx ends.
func (w *ServingWaker) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case a := <-w.wanted:
			group.Go(func() { w.watch(ctx, a) })
		}
	}
}

func (w *ServingWaker) watch(ctx context.Context, a awaited) {
	defer w.release(a.id())
	ctx, cancel := context.WithTimeout(ctx, awaitLimit)
	defer cancel()
	until := w.serving
	if a.end {
		until = w.ended
	}
	if err := until(ctx, a.target, a.endpoint); err == nil {
		w.enqueue(a.key)
	}
}

// id tells what is awaited apart: the pod of a member may come back under another
// address.
func (a awaited) id() string {
	return a.endpoint.URL + " " + a.endpoint.Address + " " + strconv.FormatBool(a.end)
}

func (w *ServingWaker) claim(url string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched[url] {
		return false
	}
	w.watched[url] = true
	return true
}

func (w *ServingWaker) release(url string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.watched, url)
}
