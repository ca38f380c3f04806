// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

var (
	errWork       = errors.New("what the work came to")
	errNoResponse = errors.New("the API does not respond")
)

// electing returns options for a process that takes part in the election and does not lose
// the lease, however slow the machine is.
func electing(identity string) *Options {
	o := NewOptions()
	o.LeaseNamespace, o.LeaseName, o.Identity = "n", "lease", identity
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = 2*time.Hour, time.Hour, 20*time.Millisecond
	return o
}

// losing returns options for a process that loses the lease soon after it cannot renew it.
func losing(identity string) *Options {
	o := electing(identity)
	o.LeaseDuration, o.RenewDeadline = 2*time.Second, time.Second
	return o
}

// leading starts to lead with a work that ends on request.
func leading(t *testing.T, o *Options, kube *fake.Clientset, work func(context.Context) error) (quit func(), result chan error) {
	t.Helper()
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

// TestLeaseOutlivesTheWork: the next holder of the lease acts at once, so the lease is
// released only when all work has ended.
func TestLeaseOutlivesTheWork(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientset()
	began, ending, end := make(chan struct{}), make(chan struct{}), make(chan struct{})
	quit, result := leading(t, electing("me"), kube, func(ctx context.Context) error {
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

// TestQuitBeforeLeading: a controller that must end does not wait for a lease that another
// process holds.
func TestQuitBeforeLeading(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientset()
	began := make(chan struct{})
	_, _ = leading(t, electing("me"), kube, func(ctx context.Context) error {
		close(began)
		<-ctx.Done()
		return nil
	})
	await(t, "the beginning of the work", began)
	ctx, quit := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, quit)
	second := make(chan error, 1)
	go func() {
		second <- lead(ctx, electing("second"), clients{lease: kube}, func(context.Context) error { return errWork })
	}()
	if err := await(t, "the return", second); err != nil {
		t.Errorf("it returned %v", err)
	}
}

// TestQuitWhileRivalsAreSought: the end of the process is no failure, even if it cuts the list
// of the other controllers' leases short.
func TestQuitWhileRivalsAreSought(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientset()
	ctx, quit := context.WithCancel(t.Context())
	defer quit()
	lists := 0
	kube.PrependReactor("list", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		if lists++; lists == 1 {
			return false, nil, nil // before the election
		}
		quit()
		return true, nil, ctx.Err()
	})
	err := lead(ctx, electing("me"), clients{lease: kube}, func(context.Context) error { return errWork })
	if err != nil || lists < 2 {
		t.Errorf("it returned %v after %d lists", err, lists)
	}
	if got := holder(t, kube); got != "" {
		t.Errorf("the lease is held by %q in the end", got)
	}
}

// TestWorkEndsByItself: the lease is released then, and the caller gets the reason.
func TestWorkEndsByItself(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientset()
	_, result := leading(t, electing("me"), kube, func(context.Context) error { return errWork })
	if err := await(t, "the return", result); !errors.Is(err, errWork) {
		t.Errorf("it returned %v", err)
	}
	if got := holder(t, kube); got != "" {
		t.Errorf("the lease is held by %q in the end", got)
	}
}

// TestLeaseIsLost: a leader that cannot renew the lease stops its work and ends. It leaves the
// lease as it is, even if the API responds again, because the work may not have ended.
func TestLeaseIsLost(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientset()
	var unresponsive atomic.Bool
	kube.PrependReactor("update", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		lease := action.(clienttesting.UpdateAction).GetObject().(*coordinationv1.Lease)
		return unresponsive.Load() && ptr.Deref(lease.Spec.HolderIdentity, "") == "me", nil, errNoResponse
	})
	began, stopped, end := make(chan struct{}), make(chan struct{}), make(chan struct{})
	_, result := leading(t, losing("me"), kube, func(ctx context.Context) error {
		close(began)
		<-ctx.Done()
		close(stopped)
		<-end
		return nil
	})
	defer close(end)
	await(t, "the beginning of the work", began)
	unresponsive.Store(true)
	if err := await(t, "the return", result); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("it returned %v", err)
	}
	if got := holder(t, kube); got != "me" {
		t.Errorf("the lease is held by %q while work goes on", got)
	}
	await(t, "the end of the work's context", stopped)
}

// TestLeaseIsLostAndTheWorkEndsAtOnce: a work that ends because the lease is lost, before its
// loss was noticed, does not hide the loss.
func TestLeaseIsLostAndTheWorkEndsAtOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lose bool
		want error
	}{
		"lost":           {true, ErrLeaseLost},
		"ends by itself": {false, errWork},
	} {
		tenure := newTenure(t.Context())
		leading, lose := context.WithCancel(tenure.election)
		tenure.work(t.Context(), leading, func(ctx context.Context) error {
			if test.lose {
				lose()
				<-ctx.Done()
			}
			return errWork
		})
		lose()
		if err := tenure.outcome(); !errors.Is(err, test.want) {
			t.Errorf("%s: it returned %v", name, err)
		}
	}
}
