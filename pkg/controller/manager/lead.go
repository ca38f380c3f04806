// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/controller/metrics"
)

// ErrLeaseLost is returned by Run when another process took the lease over. The
// process must end: whatever it still believes may be out of date.
var ErrLeaseLost = errors.New("the lease was lost")

// lead runs work while the lease is held. It returns when ctx ends and work has returned,
// when work ends by itself, or when the lease is lost. The lease is released only after
// work has ended: two processes must not act at the same time.
func lead(ctx context.Context, o *Options, c clients, work func(context.Context) error) error {
	others := newRivals(o, c.lease, clock.RealClock{})
	if err := others.await(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // the process ends while it waits
		}
		return err
	}
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: o.LeaseNamespace, Name: o.LeaseName},
		Client:     c.lease.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: o.Identity},
		Labels:     o.scope().labels(),
	}
	guarded := func(ctx context.Context) error { return others.guard(ctx, work) }
	t := newTenure(ctx)
	defer t.stop()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          lock,
		LeaseDuration: o.LeaseDuration,
		RenewDeadline: o.RenewDeadline,
		RetryPeriod:   o.RetryPeriod,
		// The elector would also release a lease that it could not renew, while work goes on.
		ReleaseOnCancel: false,
		Name:            o.LeaseName,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { t.work(ctx, leading, guarded) },
			OnStoppedLeading: func() { metrics.SetLeader(false) },
			OnNewLeader: func(identity string) {
				klog.FromContext(ctx).Info("The lease has a holder", "holder", identity)
			},
		},
	})
	if err != nil {
		return fmt.Errorf("prepare the election: %w", err)
	}
	defer context.AfterFunc(ctx, func() {
		if t.isFirst() {
			t.stop()
		}
	})()
	elector.Run(t.election)
	err = t.outcome()
	if !errors.Is(err, ErrLeaseLost) {
		releaseLease(context.WithoutCancel(ctx), o, lock)
	}
	return err
}

// tenure is the time for which this process takes part in the election.
type tenure struct {
	// election ends after the work has ended. If the elector returns before, the lease is lost.
	election context.Context //nolint:containedctx // it outlives the context that lead is given
	stop     context.CancelFunc
	// begun has room for one: the work, or the end of the process, whichever comes first.
	begun  chan struct{}
	result chan error
}

func newTenure(ctx context.Context) *tenure {
	t := &tenure{begun: make(chan struct{}, 1), result: make(chan error, 1)}
	t.election, t.stop = context.WithCancel(context.WithoutCancel(ctx))
	return t
}

// isFirst is true for the first caller.
func (t *tenure) isFirst() bool {
	select {
	case t.begun <- struct{}{}:
		return true
	default:
		return false
	}
}

// work runs the work until the process ends or the lease, which leading stands for, is lost.
func (t *tenure) work(ctx, leading context.Context, work func(context.Context) error) {
	if !t.isFirst() {
		return
	}
	defer t.stop()
	working, cancel := context.WithCancel(leading)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	metrics.SetLeader(true)
	err := work(working)
	if leading.Err() != nil {
		err = ErrLeaseLost // nothing else ends leading before the work
	}
	t.result <- err
}

// outcome returns what the elector's end means. The work may end at the same moment.
func (t *tenure) outcome() error {
	lost := t.election.Err() == nil
	select {
	case err := <-t.result:
		return err
	default:
	}
	if lost {
		return ErrLeaseLost
	}
	return nil
}

// releaseLease lets another process take the lease at once. If that fails the lease expires.
func releaseLease(ctx context.Context, o *Options, lock resourcelock.Interface) {
	ctx, cancel := context.WithTimeout(ctx, o.RenewDeadline)
	defer cancel()
	record, _, err := lock.Get(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return
	case err == nil && record.HolderIdentity != lock.Identity():
		return
	case err == nil:
		record.HolderIdentity = ""
		err = lock.Update(ctx, *record)
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "The lease could not be released; it expires by itself", "lease", lock.Describe())
	}
}
