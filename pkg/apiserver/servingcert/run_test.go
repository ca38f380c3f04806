// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"context"
	"errors"
	runtimepkg "runtime"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestStartWaits: a kube-apiserver that is away is waited for.
func TestStartWaits(t *testing.T) {
	t.Parallel()
	b := newBench()
	var away atomic.Bool
	away.Store(true)
	b.kube.PrependReactor("*", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return away.Load(), nil, errors.New("connection refused")
	})
	m := b.manager()
	done := make(chan error, 1)
	go func() { done <- m.Start(t.Context()) }()
	for range 3 {
		waitForTimer(t, b.clock)
		b.clock.Step(retryPeriod)
	}
	waitForTimer(t, b.clock)
	away.Store(false)
	b.clock.Step(retryPeriod)
	if err := <-done; err != nil || m.provider.isEmpty() {
		t.Errorf("got %v, want a certificate", err)
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.kube.PrependReactor("*", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection refused")
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.manager().Start(ctx) }()
	waitForTimer(t, b.clock)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// waitForTimer returns when a timer of the clock is running.
func waitForTimer(t *testing.T, clock *clocktesting.FakeClock) {
	t.Helper()
	for !clock.HasWaiters() {
		runtimepkg.Gosched()
		if t.Context().Err() != nil {
			t.Fatal("no timer is running")
		}
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	b := newBench()
	m := b.manager()
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, _ := m.provider.CurrentCertKeyContent()
	heard := make(chan struct{}, 1)
	m.Provider().AddListener(listenerFunc(func() { heard <- struct{}{} }))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); m.Run(ctx) }()
	waitForTimer(t, b.clock)
	b.clock.Step(leafLifetime)
	<-heard
	if after, _ := m.provider.CurrentCertKeyContent(); bytes.Equal(before, after) {
		t.Error("the leaf was not renewed")
	}
	cancel()
	<-done
}

type listenerFunc func()

func (f listenerFunc) Enqueue() { f() }
