// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// guardPeriod is how often a server reads whether its storage is still the one that it was started with.
	guardPeriod = time.Second
	// guardMaxPeriod bounds the period while the storage does not respond. A server responds to no request then.
	guardMaxPeriod = 8 * time.Second
	// guardTimeout is how long one read may take.
	guardTimeout = 5 * time.Second
)

// errStorageReplaced ends a server whose storage lost everything while it was served. An etcd whose members are emptied
// or rebuilt comes back empty at the same addresses. The start of the next server decides whether it may be served.
var errStorageReplaced = errors.New("the storage has lost the mark that an API server writes at its start, so it was emptied or replaced while this server served it. " +
	"The server ends, because Kubernetes would delete the pods of EtcdClusters that it does not find")

// storageGuard ends a server whose storage is no longer the one that it was started with.
type storageGuard struct {
	// isInUse reads the mark through a quorum.
	isInUse func(context.Context) (bool, error)
	clock   clock.Clock
	// end ends the server.
	end context.CancelCauseFunc
}

// check returns nil if the storage has the mark. Only a read that succeeds and finds no mark ends the server: an error
// says nothing about the storage.
func (g *storageGuard) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, guardTimeout)
	defer cancel()
	inUse, err := g.isInUse(ctx)
	if err != nil {
		return err
	}
	if !inUse {
		klog.FromContext(ctx).Error(errStorageReplaced, "Ending the server")
		g.end(errStorageReplaced)
		return errStorageReplaced
	}
	return nil
}

// run checks the storage until the context ends.
func (g *storageGuard) run(ctx context.Context) {
	period := guardPeriod
	for {
		timer := g.clock.NewTimer(period)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
		err := g.check(ctx)
		switch {
		case err == nil:
			period = guardPeriod
		case ctx.Err() != nil || errors.Is(err, errStorageReplaced):
			return
		default:
			period = min(2*period, guardMaxPeriod)
			klog.FromContext(ctx).V(2).Info("Cannot read whether the storage is the one of the start", "reason", err, "retryAfter", period)
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
