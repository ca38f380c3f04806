// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package waker

import (
	"context"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/share"
)

// awaitLimit bounds how long one endpoint is watched; the next observation renews
// the watch if it is still wanted.
const awaitLimit = 30 * time.Second

const (
	// maxWatched bounds the endpoints that are watched at the same time.
	maxWatched = 512
	// maxUnserved bounds those among them that were watched for awaitLimit before, without
	// a result: members of a zone that has failed leave room for members that start. The
	// periodic look finds the others.
	maxUnserved = 64
	// maxRemembered bounds what is remembered of endpoints that were watched without a
	// result.
	maxRemembered = 4096
)

// awaited is an endpoint that does not serve yet, or that is about to end, and the key to
// wake when it does.
type awaited struct {
	key      types.NamespacedName
	target   etcd.Target
	endpoint etcd.Endpoint
	end      bool
}

// WaitFunc returns nil when something has come to pass at an endpoint.
type WaitFunc func(ctx context.Context, target etcd.Target, endpoint etcd.Endpoint) error

// Waker calls back as soon as an endpoint serves, or serves no more, by asking the endpoint
// itself. It watches each endpoint once, however many calls request it, and only so many
// endpoints at the same time.
type Waker struct {
	serving, ended WaitFunc
	// all and unserved are the places of maxWatched and maxUnserved.
	all, unserved *share.Limiter

	enqueue   func(types.NamespacedName)
	requested chan awaited

	mu sync.Mutex
	// watched holds what gives back the places of each endpoint that is watched.
	watched map[string]func()
	// neverServed are the endpoints whose last watch ended without a result.
	neverServed map[string]bool
}

// New returns a waker that learns from serving that an endpoint serves and
// from ended that it does no more; nothing is watched before Run.
func New(divide func(total int) share.Places, serving, ended WaitFunc, enqueue func(types.NamespacedName)) *Waker {
	return &Waker{
		serving: serving, ended: ended, all: share.NewLimiter(divide(maxWatched)), unserved: share.NewLimiter(divide(maxUnserved)),
		enqueue: enqueue, requested: make(chan awaited, 64), watched: map[string]func(){}, neverServed: map[string]bool{},
	}
}

// Await implements cluster.Waker. It never blocks: with too many endpoints to watch the
// periodic look at the cluster has to do.
func (w *Waker) Await(key types.NamespacedName, target etcd.Target, endpoint etcd.Endpoint) {
	w.want(awaited{key: key, target: target, endpoint: endpoint})
}

// AwaitEnd implements cluster.Waker. It never blocks either.
func (w *Waker) AwaitEnd(key types.NamespacedName, target etcd.Target, endpoint etcd.Endpoint) {
	w.want(awaited{key: key, target: target, endpoint: endpoint, end: true})
}

func (w *Waker) want(a awaited) {
	if !w.reserve(a.id(), a.key.Namespace) {
		return
	}
	select {
	case w.requested <- a:
	default:
		w.release(a.id(), w.hasNeverServed(a.id()))
	}
}

// Run watches until ctx ends.
func (w *Waker) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case a := <-w.requested:
			group.Go(func() { w.watch(ctx, a) })
		}
	}
}

func (w *Waker) watch(ctx context.Context, a awaited) {
	ctx, cancel := context.WithTimeout(ctx, awaitLimit)
	defer cancel()
	until := w.serving
	if a.end {
		until = w.ended
	}
	err := until(ctx, a.target, a.endpoint)
	w.release(a.id(), err != nil)
	if err == nil {
		w.enqueue(a.key)
	}
}

// id tells what is awaited apart: the pod of a member may come back under another
// address.
func (a awaited) id() string {
	return a.endpoint.URL + " " + a.endpoint.Address + " " + strconv.FormatBool(a.end)
}

// reserve is false if the endpoint is watched, or if there is no room for it.
func (w *Waker) reserve(id, namespace string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, watched := w.watched[id]; watched {
		return false
	}
	release, lack := w.all.Acquire(namespace)
	if lack != share.Nothing {
		return false
	}
	if w.neverServed[id] {
		again, lack := w.unserved.Acquire(namespace)
		if lack != share.Nothing {
			release()
			return false
		}
		of := release
		release = func() { of(); again() }
	}
	w.watched[id] = release
	return true
}

// release ends a reservation. neverServed is true if the endpoint was watched without a
// result.
func (w *Waker) release(id string, neverServed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watched[id]()
	delete(w.watched, id)
	if !neverServed {
		delete(w.neverServed, id)
		return
	}
	if len(w.neverServed) >= maxRemembered {
		clear(w.neverServed) // also of deleted endpoints
	}
	w.neverServed[id] = true
}

func (w *Waker) hasNeverServed(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.neverServed[id]
}
