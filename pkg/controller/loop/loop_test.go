// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/controller/loop"
)

const deadline = 30 * time.Second

// start runs the loop until the test ends and returns the calls that it makes.
func start(t *testing.T, result func(call int) (time.Duration, error)) (*loop.Loop, <-chan types.NamespacedName) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	calls := make(chan types.NamespacedName)
	n := 0
	queue := loop.New(t.Name(), clock.RealClock{}, func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
		select {
		case calls <- key:
		case <-ctx.Done():
		}
		n++
		return result(n)
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		queue.Run(ctx, 1)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return queue, calls
}

func expect(t *testing.T, calls <-chan types.NamespacedName, want types.NamespacedName) {
	t.Helper()
	select {
	case got := <-calls:
		if got != want {
			t.Fatalf("reconciled %s, want %s", got, want)
		}
	case <-time.After(deadline):
		t.Fatalf("%s was not reconciled within %s", want, deadline)
	}
}

func TestLoopTriesAgainAfterAnErrorAndAfterAWait(t *testing.T) {
	t.Parallel()
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	queue, calls := start(t, func(call int) (time.Duration, error) {
		switch call {
		case 1:
			return 0, errors.New("something went wrong")
		case 2:
			return time.Millisecond, nil
		default:
			return 0, nil
		}
	})
	queue.Enqueue(key)
	for range 3 {
		expect(t, calls, key)
	}
	select {
	case <-calls:
		t.Error("reconciled again although nothing asked for it")
	case <-time.After(200 * time.Millisecond):
	}
}

// TestPanicStaysWithItsKey: a defect that one object brings to light is an error of that object.
func TestPanicStaysWithItsKey(t *testing.T) {
	t.Parallel()
	key, other := types.NamespacedName{Namespace: "ns", Name: "a"}, types.NamespacedName{Namespace: "ns", Name: "b"}
	queue, calls := start(t, func(call int) (time.Duration, error) {
		if call == 1 {
			panic("a defect")
		}
		return 0, nil
	})
	queue.Enqueue(key)
	expect(t, calls, key)
	expect(t, calls, key) // it is tried again
	queue.Enqueue(other)
	expect(t, calls, other)
}

func TestLoopIsFedByInformers(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Pods().Informer()
	queue, calls := start(t, func(int) (time.Duration, error) { return 0, nil })
	err := queue.Feed(informer, func(object metav1.Object) (types.NamespacedName, bool) {
		name, ok := object.GetLabels()["cluster"]
		return types.NamespacedName{Namespace: object.GetNamespace(), Name: name}, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSync(t.Context().Done())
	for name, labels := range map[string]map[string]string{"other": nil, "member": {"cluster": "a"}} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels}}
		if _, err := client.CoreV1().Pods("ns").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, calls, types.NamespacedName{Namespace: "ns", Name: "a"})
	if err := client.CoreV1().Pods("ns").Delete(t.Context(), "member", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expect(t, calls, types.NamespacedName{Namespace: "ns", Name: "a"})
}

// TestWaitHoldsUpNoOtherKey: reconciles that wait for something outside occupy no worker, and
// those that work are never more than there are workers.
func TestWaitHoldsUpNoOtherKey(t *testing.T) {
	t.Parallel()
	const waiting, workers = 100, 2
	ctx, cancel := context.WithCancel(t.Context())
	var working, most atomic.Int64
	work := func() {
		n := working.Add(1)
		defer working.Add(-1)
		for {
			old := most.Load()
			if n <= old || most.CompareAndSwap(old, n) {
				break
			}
		}
		runtime.Gosched()
	}
	arrived, back, done := make(chan struct{}, waiting), make(chan struct{}), make(chan types.NamespacedName, waiting+1)
	queue := loop.New(t.Name(), clock.RealClock{}, func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
		work()
		if key.Namespace == "silent" {
			loop.Aside(ctx, func() {
				loop.Aside(ctx, func() { arrived <- struct{}{} }) // one within the other
				<-back
			})
			work()
		}
		done <- key
		return 0, nil
	})
	over := make(chan struct{})
	go func() {
		defer close(over)
		queue.Run(ctx, workers)
	}()
	for i := range waiting {
		queue.Enqueue(types.NamespacedName{Namespace: "silent", Name: strconv.Itoa(i)})
	}
	for range waiting {
		<-arrived
	}
	healthy := types.NamespacedName{Namespace: "healthy", Name: "a"}
	queue.Enqueue(healthy)
	expect(t, done, healthy)
	close(back)
	for range waiting {
		if key := <-done; key == healthy {
			t.Error("it was reconciled twice")
		}
	}
	cancel()
	<-over
	if got := most.Load(); got > workers {
		t.Errorf("%d reconciles worked at once with %d workers", got, workers)
	}
}
