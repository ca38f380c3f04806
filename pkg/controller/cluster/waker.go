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

const (
	// maxWatched bounds the endpoints that are watched at the same time.
	maxWatched = 512
	// maxUnserved bounds those among them that were watched for awaitLimit before, in vain:
	// members of a zone that has failed leave room for members that start. The periodic
	// look finds the others.
	maxUnserved = 64
	// maxRemembered bounds what is remembered of endpoints that were watched in vain.
	maxRemembered = 4096
)

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
// the endpoint itself. It watches each endpoint once, however often it is asked to, and
// only so many endpoints at the same time.
type ServingWaker struct {
	serving, ended WaitFunc

	enqueue func(types.NamespacedName)
	wanted  chan awaited

	mu sync.Mutex
	// watched tells of each endpoint whether it is among those of maxUnserved.
	watched  map[string]bool
	unserved int
	// vain are the endpoints whose last watch ended without a result.
	vain map[string]bool
}

// NewServingWaker returns a waker that learns from serving that an endpoint serves and
// from ended that it does no more; nothing is watched before Run.
func NewServingWaker(serving, ended WaitFunc, enqueue func(types.NamespacedName)) *ServingWaker {
	return &ServingWaker{serving: serving, ended: ended, enqueue: enqueue, wanted: make(chan awaited, 64), watched: map[string]bool{}, vain: map[string]bool{}}
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
		w.release(a.id(), w.wasVain(a.id()))
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

// claim is false if the endpoint is watched, or if there is no room for it.
func (w *ServingWaker) claim(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, watched := w.watched[id]
	vain := w.vain[id]
	if watched || len(w.watched) >= maxWatched || vain && w.unserved >= maxUnserved {
		return false
	}
	w.watched[id] = vain
	if vain {
		w.unserved++
	}
	return true
}

// release ends a claim. vain is true if the endpoint was watched without a result.
func (w *ServingWaker) release(id string, vain bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched[id] {
		w.unserved--
	}
	delete(w.watched, id)
	if !vain {
		delete(w.vain, id)
		return
	}
	if len(w.vain) >= maxRemembered {
		clear(w.vain) // also of endpoints that are gone
	}
	w.vain[id] = true
}

func (w *ServingWaker) wasVain(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.vain[id]
}
