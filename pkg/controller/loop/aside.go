// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"sync"
)

// place is what a reconcile occupies while it works: one of the workers of its loop.
type place struct {
	workers chan struct{}

	mu   sync.Mutex
	held bool
}

type placeKey struct{}

// newPlace waits for a worker.
func newPlace(workers chan struct{}) *place {
	workers <- struct{}{}
	return &place{workers: workers, held: true}
}

// leave gives the worker back. It is false if that has happened before.
func (p *place) leave() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.held {
		return false
	}
	p.held = false
	<-p.workers
	return true
}

func (p *place) comeBack() {
	p.workers <- struct{}{}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = true
}

// Aside runs f, which waits for something outside, such as a member that does not
// respond. If ctx belongs to a reconcile, another reconcile has its worker meanwhile. The
// key stays with this reconcile: no other one works on it.
func Aside(ctx context.Context, f func()) {
	if p, working := ctx.Value(placeKey{}).(*place); working && p.leave() {
		defer p.comeBack()
	}
	f()
}
