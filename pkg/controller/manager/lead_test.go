// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

var (
	errWork     = errors.New("what the work came to")
	errNoAnswer = errors.New("the API does not answer")
)

// leading starts to lead with a work that ends when it is let.
func leading(t *testing.T, kube *fake.Clientset, work func(context.Context) error) (quit func(), result chan error) {
	t.Helper()
	o := NewOptions()
	o.LeaseNamespace, o.LeaseName, o.Identity = "n", "lease", "me"
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = 2*time.Second, time.Second, 20*time.Millisecond
	ctx, quit := context.WithCancel(t.Context())
	t.Cleanup(quit)
	result = make(chan error, 1)
	go func() { result <- lead(ctx, o, clients{lease: kube}, work) }()
	return quit, result
}

// patience is far longer than anything here takes.
const patience = 20 * time.Second

// await fails the test if nothing comes.
func await[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(patience):
		t.Fatalf("never came: %s", what)
		panic("not reached")
	}
}

func holder(t *testing.T, kube *fake.Clientset) string {
	t.Helper()
	lease, err := kube.CoordinationV1().Leases("n").Get(t.Context(), "lease", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// TestLeaseOutlivesTheWork: whoever takes the lease over acts at once, so it is given up
// only when nothing is done any more.
func TestLeaseOutlivesTheWork(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientset()
	began, ending, end := make(chan struct{}), make(chan struct{}), make(chan struct{})
	quit, result := leading(t, kube, func(ctx context.Context) error {
		close(began)
		<-ctx.Done()
		close(ending)
		<-end
		return errWork
	})
	await(t, "the beginning of the work", began)
	quit()
	await(t, "the end of the work's context", ending)
	select {
	case err := <-result:
		t.Fatalf("it returned while work went on: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	if got := holder(t, kube); got != "me" {
		t.Fatalf("the lease is held by %q while work goes on", got)
	}
	close(end)
	if err := await(t, "the return", result); !errors.Is(err, errWork) {
		t.Errorf("it returned %v", err)
	}
	if got := holder(t, kube); got != "" {
		t.Errorf("the lease is held by %q in the end", got)
	}
}

// TestQuitBeforeLeading: nobody waits for a lease that somebody else has.
func TestQuitBeforeLeading(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientset()
	began := make(chan struct{})
	_, _ = leading(t, kube, func(ctx context.Context) error {
		close(began)
		<-ctx.Done()
		return nil
	})
	await(t, "the beginning of the work", began)
	o := NewOptions()
	o.LeaseNamespace, o.LeaseName, o.Identity = "n", "lease", "second"
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = 2*time.Second, time.Second, 20*time.Millisecond
	ctx, quit := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, quit)
	second := make(chan error, 1)
	go func() { second <- lead(ctx, o, clients{lease: kube}, func(context.Context) error { return errWork }) }()
	if err := await(t, "the return", second); err != nil {
		t.Errorf("it returned %v", err)
	}
}

// TestWorkEndsByItself: then nobody holds the lease any more, and it is told why.
func TestWorkEndsByItself(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientset()
	_, result := leading(t, kube, func(context.Context) error { return errWork })
	if err := await(t, "the return", result); !errors.Is(err, errWork) {
		t.Errorf("it returned %v", err)
	}
	if got := holder(t, kube); got != "" {
		t.Errorf("the lease is held by %q in the end", got)
	}
}

// TestLeaseIsLost: whoever cannot renew it stops its work, because another one may have it,
// and ends.
func TestLeaseIsLost(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientset()
	var silent atomic.Bool
	kube.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) { return silent.Load(), nil, errNoAnswer })
	began, stopped := make(chan struct{}), make(chan struct{})
	_, result := leading(t, kube, func(ctx context.Context) error {
		close(began)
		<-ctx.Done()
		close(stopped)
		return nil
	})
	await(t, "the beginning of the work", began)
	silent.Store(true)
	if err := await(t, "the return", result); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("it returned %v", err)
	}
	await(t, "the end of the work", stopped)
}
