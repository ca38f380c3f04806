// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
)

var errWork = errors.New("what the work came to")

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
	<-began
	quit()
	<-ending
	select {
	case err := <-result:
		t.Fatalf("it returned while work went on: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	if got := holder(t, kube); got != "me" {
		t.Fatalf("the lease is held by %q while work goes on", got)
	}
	close(end)
	if err := <-result; !errors.Is(err, errWork) {
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
	<-began
	o := NewOptions()
	o.LeaseNamespace, o.LeaseName, o.Identity = "n", "lease", "second"
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = 2*time.Second, time.Second, 20*time.Millisecond
	ctx, quit := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, quit)
	if err := lead(ctx, o, clients{lease: kube}, func(context.Context) error { return errWork }); err != nil {
		t.Errorf("it returned %v", err)
	}
}
