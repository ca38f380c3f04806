// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package waker_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/controller/waker"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/share"
)

func TestWakerCallsBackOnceAnEndpointServes(t *testing.T) {
	t.Parallel()
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	responses := make(chan error)
	asked := make(chan string, 8)
	woken := make(chan types.NamespacedName, 8)
	w := waker.New(share.Divided,
		func(ctx context.Context, _ etcd.Target, e etcd.Endpoint) error {
			asked <- e.URL
			select {
			case err := <-responses:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		},
		func(context.Context, etcd.Target, etcd.Endpoint) error { return errors.New("nothing ends here") },
		func(k types.NamespacedName) { woken <- k })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	endpoint := etcd.Endpoint{Name: "a-1", URL: "http://192.0.2.1:2379"}
	w.Await(key, etcd.Target{}, endpoint)
	w.Await(key, etcd.Target{}, endpoint) // the same endpoint is watched once
	if got := receive(t, asked); got != endpoint.URL {
		t.Fatalf("asked %s, want %s", got, endpoint.URL)
	}
	responses <- nil
	if got := receive(t, woken); got != key {
		t.Fatalf("woke %s, want %s", got, key)
	}

	// An endpoint that never serves wakes no key and may be watched again. The watch that
	// ended is released right after it called back, so it may take another call.
	for {
		w.Await(key, etcd.Target{}, endpoint)
		select {
		case <-asked:
		case <-time.After(time.Millisecond):
			continue
		}
		break
	}
	responses <- errors.New("timed out")
	cancel()
	<-done
	if len(woken) != 0 || len(asked) != 0 {
		t.Errorf("woke %d and asked %d times more than expected", len(woken), len(asked))
	}
}

func TestWakerCallsBackOnceAnEndpointEnds(t *testing.T) {
	t.Parallel()
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	woken := make(chan types.NamespacedName, 8)
	w := waker.New(share.Divided,
		func(ctx context.Context, _ etcd.Target, _ etcd.Endpoint) error {
			<-ctx.Done()
			return ctx.Err()
		},
		func(context.Context, etcd.Target, etcd.Endpoint) error { return nil },
		func(k types.NamespacedName) { woken <- k })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	endpoint := etcd.Endpoint{Name: "a-1", URL: "http://192.0.2.1:2379"}
	w.Await(key, etcd.Target{}, endpoint) // that it serves is another matter
	w.AwaitEnd(key, etcd.Target{}, endpoint)
	if got := receive(t, woken); got != key {
		t.Fatalf("woke %s, want %s", got, key)
	}
	cancel()
	<-done
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(30 * time.Second):
		t.Fatal("nothing happened within 30 s")
		panic("unreachable")
	}
}

// TestWakerIsBounded: the members of one namespace take half of the places. Those of a zone that has failed take fewer, so
// that members that start are watched all the same.
func TestWakerIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		watching := 0
		var mu sync.Mutex
		w := waker.New(share.Divided, func(ctx context.Context, _ etcd.Target, _ etcd.Endpoint) error {
			mu.Lock()
			watching++
			mu.Unlock()
			<-ctx.Done()
			mu.Lock()
			watching--
			mu.Unlock()
			return ctx.Err()
		}, nil, func(types.NamespacedName) { t.Error("nothing serves") })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.Run(ctx)
		}()
		awaitAll := func(prefix string, n int) int {
			for i := range n {
				w.Await(types.NamespacedName{Namespace: prefix}, etcd.Target{}, etcd.Endpoint{URL: prefix + strconv.Itoa(i)})
				synctest.Wait() // it is taken up
			}
			mu.Lock()
			defer mu.Unlock()
			return watching
		}
		if got := awaitAll("unresponsive", 1000); got != 256 {
			t.Errorf("%d endpoints are watched at once", got)
		}
		<-time.After(31 * time.Second) // none of these has served
		synctest.Wait()
		if got := awaitAll("unresponsive", 256); got != 32 {
			t.Errorf("%d endpoints are watched again that have never served", got)
		}
		if got := awaitAll("starts", 100); got != 132 {
			t.Errorf("%d endpoints are watched with those of 100 members that start", got)
		}
		cancel()
		<-done
	})
}
