// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
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
		ends  bool
	}{
		"storage that stays":            {[]read{{inUse: true}, {inUse: true}}, false},
		"storage that loses its mark":   {[]read{{inUse: true}, {}}, true},
		"storage that does not respond": {[]read{{err: errDown}, {err: errDown}, {err: errDown}, {inUse: true}, {inUse: true}}, false},
		"storage that comes back empty": {[]read{{err: errDown}, {err: errDown}, {err: errDown}, {}}, true},
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
				now.Step(guardPeriod - 1)
				if !now.HasWaiters() {
					t.Fatalf("read %d comes before %s", i, guardPeriod)
				}
				now.Step(1)
				select {
				case reads <- r:
				case <-time.After(10 * time.Second):
					t.Fatalf("read %d does not come after %s", i, guardPeriod)
				}
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

// TestRecentReadConfirms: clients at rest cause no reads of the mark, and no response counts that no read has confirmed.
func TestRecentReadConfirms(t *testing.T) {
	t.Parallel()
	ok, down := error(nil), errors.New("no leader")
	for name, test := range map[string]struct {
		// before are the errors of earlier reads.
		before []error
		age    time.Duration
		// reads is how many reads the request causes.
		reads int
	}{
		"never read":               {nil, 0, 1},
		"found at once":            {[]error{ok}, 0, 0},
		"found a period ago":       {[]error{ok}, guardPeriod, 0},
		"found at the limit":       {[]error{ok}, guardRecent, 0},
		"found too long ago":       {[]error{ok}, guardRecent + 1, 1},
		"found, and then not read": {[]error{ok, down}, 0, 1},
		"not read, and then found": {[]error{down, ok}, 0, 0},
		"not read":                 {[]error{down}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := clocktesting.NewFakeClock(time.Unix(0, 0))
			reads, result := 0, error(nil)
			guard := &storageGuard{clock: now, isInUse: func(context.Context) (bool, error) {
				reads++
				return result == nil, result
			}}
			for _, result = range test.before {
				if err := guard.Check(t.Context()); !errors.Is(err, result) {
					t.Fatalf("a read reports %v, want %v", err, result)
				}
			}
			now.Step(test.age)
			reads, result = 0, down
			err := guard.CheckRecent(t.Context())
			if reads != test.reads || (err == nil) != (test.reads == 0) {
				t.Errorf("%d reads, want %d; result %v", reads, test.reads, err)
			}
		})
	}
}

// TestFailedReadKeepsWhatALaterOneHasFound: one member that does not respond does not make every client read the mark, and
// neither does a client that went away.
func TestFailedReadKeepsWhatALaterOneHasFound(t *testing.T) {
	t.Parallel()
	down := errors.New("no leader")
	for name, test := range map[string]struct {
		// during is what happens while a read takes its time and then fails.
		during func(g *storageGuard, now *clocktesting.FakeClock, leave context.CancelFunc)
		recent bool
	}{
		"only it": {func(*storageGuard, *clocktesting.FakeClock, context.CancelFunc) {}, false},
		"a later read": {func(g *storageGuard, now *clocktesting.FakeClock, _ context.CancelFunc) {
			now.Step(1)
			_ = g.Check(t.Context())
		}, true},
		"the client that left it": {func(_ *storageGuard, _ *clocktesting.FakeClock, leave context.CancelFunc) { leave() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := clocktesting.NewFakeClock(time.Unix(1, 0))
			var guard *storageGuard
			during := func() {}
			reads := 0
			guard = &storageGuard{clock: now, isInUse: func(context.Context) (bool, error) {
				if reads++; reads != 2 {
					return true, nil
				}
				during()
				return false, down
			}}
			if err := guard.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			during = func() { test.during(guard, now, leave) }
			if err := guard.Check(ctx); !errors.Is(err, down) {
				t.Fatalf("the read returns %v", err)
			}
			before := reads
			if err := guard.CheckRecent(t.Context()); err != nil || (reads == before) != test.recent {
				t.Errorf("%d reads more, %v", reads-before, err)
			}
		})
	}
}

// TestReplacedStorageHasNoMissingObjects: between the replacement and the end of the server, no client gets the response that
// an EtcdCluster does not exist. Kubernetes deletes the pods of one that does not. Garbage collection also reads that from lists
// and watches, and from another UID.
func TestReplacedStorageHasNoMissingObjects(t *testing.T) {
	t.Parallel()
	server, o, now, ended := startGuarded(t)
	clusters := server.client.EtcdV1beta2().EtcdClusters("default")
	if _, err := clusters.Create(t.Context(), newCluster("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	client := server.client.EtcdV1beta2().RESTClient()
	to := func(verb string) *rest.Request {
		// A response with Retry-After is the result, and not the response to the next attempt.
		return client.Verb(verb).Namespace("default").Resource("etcdclusters").MaxRetries(0)
	}
	created := 0
	requests := map[string]func() error{
		"get":                       func() error { return to("GET").Name("a").Do(t.Context()).Error() },
		"get from the watch cache":  func() error { return to("GET").Name("a").Param("resourceVersion", "0").Do(t.Context()).Error() },
		"list":                      func() error { return to("GET").Do(t.Context()).Error() },
		"list from the watch cache": func() error { return to("GET").Param("resourceVersion", "0").Do(t.Context()).Error() },
		"list in parts":             func() error { return to("GET").Param("limit", "1").Do(t.Context()).Error() },
		"create": func() error {
			created++
			return to("POST").Body(newCluster(fmt.Sprintf("b%d", created))).Do(t.Context()).Error()
		},
		"apply": func() error {
			body := `{"apiVersion":"etcd.database.coreos.com/v1beta2","kind":"EtcdCluster","metadata":{"name":"c"},"spec":{"size":3,"version":"3.6.16"}}`
			return client.Patch(types.ApplyPatchType).Namespace("default").Resource("etcdclusters").Name("c").MaxRetries(0).
				Param("fieldManager", "test").Body([]byte(body)).Do(t.Context()).Error()
		},
		"watch": func() error {
			events, err := to("GET").Param("watch", "true").Watch(t.Context())
			if err == nil {
				events.Stop()
			}
			return err
		},
	}
	missing := func() error { return to("GET").Name("absent").Do(t.Context()).Error() }
	for name, request := range requests {
		if err := request(); err != nil {
			t.Errorf("%s in the storage of the start: %v", name, err)
		}
	}
	if err := missing(); !apierrors.IsNotFound(err) {
		t.Errorf("storage of the start: %v, want that the object is not found", err)
	}
	if _, err := server.etcd.Delete(t.Context(), o.inUseKey()); err != nil {
		t.Fatal(err)
	}
	if err := missing(); !apierrors.IsServerTimeout(err) {
		t.Errorf("another storage: %v, want a timeout of the server", err)
	}
	if !errors.Is(context.Cause(ended), errStorageReplaced) {
		t.Error("the server goes on")
	}
	now.Step(guardRecent + 1)
	for name, request := range requests {
		if err := request(); !apierrors.IsServerTimeout(err) && !apierrors.IsTooManyRequests(err) {
			t.Errorf("%s in another storage: %v, want that the client is to try again", name, err)
		}
	}
}

// startGuarded starts a server with a guard that reads nothing by itself.
func startGuarded(t *testing.T) (server *standalone, o *Options, now *clocktesting.FakeClock, ended context.Context) {
	t.Helper()
	storage, err := embeddedetcd.Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(storage.Stop)
	ended, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	now = clocktesting.NewFakeClock(time.Unix(0, 0))
	o = parse(t, "--etcd-servers="+storage.Endpoint(), "--allow-empty-storage")
	o.clock = now
	stop, err := o.startStorageGuard(ended, cancel)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return startServer(t, storage, o), o, now, ended
}
