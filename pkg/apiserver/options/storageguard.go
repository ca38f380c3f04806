// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// guardPeriod is how often a server reads whether its storage is still the one that it was started with. It does not
	// grow while the storage does not respond: a storage that comes back empty has not responded before.
	guardPeriod = time.Second
	// guardRecent is for how long a read that has found the mark confirms responses. It is longer than the period by the
	// time that a read takes, so that clients at rest cause no reads. It is shorter than the time in which an etcd comes back
	// empty and the watch cache has read it: the watch cache alone waits a second first.
	guardRecent = 3 * guardPeriod / 2
	// guardTimeout is how long one read may take.
	guardTimeout = 5 * time.Second
)

// errStorageReplaced ends a server whose storage lost everything while it was served. An etcd whose members are emptied
// or rebuilt comes back empty at the same addresses. The start of the next server decides whether it may be served.
var errStorageReplaced = errors.New("the storage has lost the mark that an API server writes at its start, so it was emptied or replaced while this server served it. " +
	"The server ends, because Kubernetes would delete the pods of EtcdClusters that it does not find")

// storageGuard ends a server whose storage is no longer the one that it was started with. It implements storage.Guard.
type storageGuard struct {
	// isInUse reads the mark through a quorum.
	isInUse func(context.Context) (bool, error)
	clock   clock.Clock
	// end ends the server.
	end context.CancelCauseFunc

	mu sync.Mutex
	// found is when the last read that has found the mark began. It is zero after one that has failed since.
	found time.Time
}

// Check returns nil if the storage has the mark. Only a read that succeeds and finds no mark ends the server: an error
// says nothing about the storage.
func (g *storageGuard) Check(ctx context.Context) error {
	began := g.clock.Now()
	limited, cancel := context.WithTimeout(ctx, guardTimeout)
	defer cancel()
	inUse, err := g.isInUse(limited)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case err != nil && (ctx.Err() != nil || g.found.After(began)):
		return err // a client went away, or a later read has found the mark
	case err != nil:
		g.found = time.Time{}
		return err
	case !inUse:
		g.found = time.Time{}
		klog.FromContext(ctx).Error(errStorageReplaced, "Ending the server")
		g.end(errStorageReplaced)
		return errStorageReplaced
	case began.After(g.found):
		g.found = began
	}
	return nil
}

// CheckRecent returns nil if the storage has the mark, or if the last read has found it and began a moment ago. After a
// read that has failed, the storage is not confirmed until a read has found the mark.
func (g *storageGuard) CheckRecent(ctx context.Context) error {
	g.mu.Lock()
	recent := g.clock.Since(g.found) <= guardRecent
	g.mu.Unlock()
	if recent {
		return nil
	}
	return g.Check(ctx)
}

// run checks the storage until the context ends.
func (g *storageGuard) run(ctx context.Context) {
	for {
		timer := g.clock.NewTimer(guardPeriod)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
		err := g.Check(ctx)
		switch {
		case err == nil:
		case ctx.Err() != nil || errors.Is(err, errStorageReplaced):
			return
		default:
			klog.FromContext(ctx).V(2).Info("Cannot read whether the storage is the one of the start", "reason", err)
		}
	}
}

// untilReplaced runs the server until it has ended in order, or until the storage was replaced. It does not wait for
// the requests of now then, and takes no more of them: the responses would be those of the other storage.
func untilReplaced(ctx context.Context, serve func(context.Context) error) error {
	served := make(chan error, 1)
	go func() { served <- serve(ctx) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	if cause := context.Cause(ctx); errors.Is(cause, errStorageReplaced) {
		return cause
	}
	return <-served
}
