// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/apiserver/embeddedetcd"
)

// TestReplacedStorageEndsTheServer: an etcd that comes back empty at the same addresses ends a server that runs, which
// the check of its start cannot do. An etcd that does not respond does not end it.
func TestReplacedStorageEndsTheServer(t *testing.T) {
	t.Parallel()
	errDown := errors.New("no leader")
	type read struct {
		inUse bool
		err   error
	}
	for name, test := range map[string]struct {
		reads []read
		// after is how long the guard waits before each read.
		after []time.Duration
		ends  bool
	}{
		"storage that stays":          {[]read{{inUse: true}, {inUse: true}}, []time.Duration{guardPeriod, guardPeriod}, false},
		"storage that loses its mark": {[]read{{inUse: true}, {}}, []time.Duration{guardPeriod, guardPeriod}, true},
		"storage that does not respond": {
			[]read{{err: errDown}, {err: errDown}, {err: errDown}, {err: errDown}, {inUse: true}, {inUse: true}},
			[]time.Duration{guardPeriod, 2 * guardPeriod, 4 * guardPeriod, guardMaxPeriod, guardMaxPeriod, guardPeriod}, false,
		},
		"storage that comes back empty": {[]read{{err: errDown}, {}}, []time.Duration{guardPeriod, 2 * guardPeriod}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			now := clocktesting.NewFakeClock(time.Unix(0, 0))
			reads := make(chan read)
			guard := &storageGuard{clock: now, end: cancel, isInUse: func(ctx context.Context) (bool, error) {
				select {
				case r := <-reads:
					return r.inUse, r.err
				case <-ctx.Done():
					return false, ctx.Err()
				}
			}}
			done := make(chan struct{})
			go func() {
				defer close(done)
				guard.run(ctx)
			}()
			for i, r := range test.reads {
				awaitTimer(t, now)
				now.Step(test.after[i] - 1)
				if !now.HasWaiters() {
					t.Fatalf("read %d comes before %s", i, test.after[i])
				}
				now.Step(1)
				reads <- r
			}
			if test.ends {
				<-done
			} else {
				awaitTimer(t, now)
			}
			if ended := errors.Is(context.Cause(ctx), errStorageReplaced); ended != test.ends {
				t.Errorf("the server has ended: %t, want %t", ended, test.ends)
			}
		})
	}
}

// awaitTimer returns when the guard waits for its next read.
func awaitTimer(t *testing.T, now *clocktesting.FakeClock) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return now.HasWaiters(), nil })
	if err != nil {
		t.Fatal("the guard does not wait for its next read")
	}
}

// TestReplacedStorageEndsAtOnce: a server whose storage was replaced does not respond to the requests of now, as one does
// that is stopped.
func TestReplacedStorageEndsAtOnce(t *testing.T) {
	t.Parallel()
	errServe := errors.New("the address is in use")
	for name, test := range map[string]struct {
		cause error
		// drains is true if the server waits for its requests after the context has ended.
		drains bool
		want   error
	}{
		"replaced":     {errStorageReplaced, true, errStorageReplaced},
		"stopped":      {context.Canceled, false, nil},
		"never served": {nil, false, errServe},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			returned := make(chan struct{})
			defer close(returned)
			err := untilReplaced(ctx, func(ctx context.Context) error {
				if test.cause == nil {
					return errServe
				}
				cancel(test.cause)
				if test.drains {
					select {
					case <-returned:
					case <-time.After(10 * time.Second):
					}
				}
				return nil
			})
			if !errors.Is(err, test.want) {
				t.Errorf("ended with %v, want %v", err, test.want)
			}
		})
	}
}

// TestReplacedStorageHasNoMissingObjects: between the replacement and the next read of the guard, no client gets the response that
// an EtcdCluster does not exist. Kubernetes deletes the pods of one that does not.
func TestReplacedStorageHasNoMissingObjects(t *testing.T) {
	t.Parallel()
	storage, err := embeddedetcd.Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(storage.Stop)
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	o := parse(t, "--etcd-servers="+storage.Endpoint(), "--allow-empty-storage")
	o.clock = clocktesting.NewFakeClock(time.Unix(0, 0)) // no read of the guard by itself
	stop, err := o.startStorageGuard(ctx, cancel)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	server := startServer(t, storage, o)
	clusters := server.client.EtcdV1beta2().EtcdClusters("default")
	if _, err := clusters.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("storage of the start: %v, want that the object is not found", err)
	}
	if _, err := server.etcd.Delete(t.Context(), o.inUseKey()); err != nil {
		t.Fatal(err)
	}
	if _, err := clusters.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsServerTimeout(err) {
		t.Errorf("another storage: %v, want a timeout of the server", err)
	}
	if !errors.Is(context.Cause(ctx), errStorageReplaced) {
		t.Error("the server goes on")
	}
}
