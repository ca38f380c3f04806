// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// TestRequestsShareAProbe: requests of the same moment ask once, those of another moment, or about a
// cluster in another state, ask again.
func TestRequestsShareAProbe(t *testing.T) {
	t.Parallel()
	pool := etcd.NewPool(etcd.PoolConfig{})
	t.Cleanup(pool.Close)
	kube, clock := fake.NewClientset(), testingclock.NewFakePassiveClock(time.Unix(1000, 0))
	var asked atomic.Int64
	begun, goOn := make(chan struct{}, 10), make(chan struct{})
	kube.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		asked.Add(1)
		begun <- struct{}{}
		<-goOn
		return false, nil, nil
	})
	prober := New(kube, pool, clock)
	cluster := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns", UID: "u", ResourceVersion: "1"}}
	ask := func(ctx context.Context, about *v1beta2.EtcdCluster) {
		t.Helper()
		if p, err := prober.ProbeShared(ctx, about); err != nil || p == nil || !p.PodsKnown {
			t.Errorf("got %+v, %v", p, err)
		}
	}

	// The request that started the probe ends; requests that wait with it get the response.
	ended, leave := context.WithCancel(t.Context())
	var starter, group sync.WaitGroup
	starter.Go(func() {
		if _, err := prober.ProbeShared(ended, cluster); err == nil {
			t.Error("a request that ended has a response")
		}
	})
	<-begun
	leave()
	starter.Wait() // else the response may come before it has noticed its end
	for range 5 {
		group.Go(func() { ask(t.Context(), cluster) })
	}
	close(goOn)
	group.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times at the same time, want once", n)
	}
	ask(t.Context(), cluster)
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times within a second, want once", n)
	}
	changed := cluster.DeepCopy()
	changed.ResourceVersion = "2"
	ask(t.Context(), changed)
	clock.SetTime(clock.Now().Add(sharedFor))
	ask(t.Context(), cluster)
	if n := asked.Load(); n != 3 {
		t.Errorf("asked %d times, want once more for a changed cluster and once more after a second", n)
	}
	if n := len(prober.shared.recent); n != 1 {
		t.Errorf("%d probes are kept, want only the one that is not too old", n)
	}
}
