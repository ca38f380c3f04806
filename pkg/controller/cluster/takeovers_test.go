// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/share"
)

// TestTakeOversAreShared: a user writes the endpoints that the controller keeps connections to, so a namespace has a share
// of them. A cluster keeps its place until it has no old members, or is deleted.
func TestTakeOversAreShared(t *testing.T) {
	t.Parallel()
	r := newReconciler(Config{TakeOvers: share.NewLimiter(share.Divided(4))})
	phase := v1beta2.ClusterPhaseCreating
	observeIn := func(namespace, name string, done bool) (endpoints int, lack string) {
		c := &v1beta2.EtcdCluster{}
		c.Namespace, c.Name, c.Status.Phase = namespace, name, phase
		if !done {
			c.Spec.Bootstrap = &v1beta2.BootstrapPolicy{Existing: &v1beta2.ExistingEtcd{ClientEndpoints: []string{"http://10.0.0.1:2379"}}}
		}
		current := &run{Reconciler: r, key: types.NamespacedName{Namespace: namespace, Name: name}, seen: &seen{Observed: planner.Observed{Cluster: c}}}
		observeExisting(t.Context(), current)
		return len(current.seen.existing.Endpoints), current.seen.Etcd.NoPlace
	}
	for i := range 2 {
		for range 2 { // once more takes no further place
			if n, err := observeIn("greedy", strconv.Itoa(i), false); n != 1 || err != "" {
				t.Errorf("take-over %d: %d endpoints, %s", i, n, err)
			}
		}
	}
	if n, lack := observeIn("greedy", "more", false); n != 0 || !strings.Contains(lack, "its share of the 4") {
		t.Errorf("a namespace has more than its share: %d endpoints, %s", n, lack)
	}
	phase = v1beta2.ClusterPhaseRunning
	if n, lack := observeIn("greedy", "serves", false); n != 1 || lack != "" {
		t.Errorf("a take-over that has begun waits for a place: %d endpoints, %s", n, lack)
	}
	phase = v1beta2.ClusterPhaseCreating
	if n, err := observeIn("other", "x", false); n != 1 || err != "" {
		t.Errorf("another namespace: %d endpoints, %s", n, err)
	}
	if _, err := observeIn("greedy", "0", true); err != "" {
		t.Error(err)
	}
	r.existing.forget(types.NamespacedName{Namespace: "other", Name: "x"})
	if n, err := observeIn("greedy", "more", false); n != 1 || err != "" {
		t.Errorf("the place of one that has ended is not free: %d endpoints, %s", n, err)
	}
	if lack := (&takeOvers{}).begin(types.NamespacedName{Name: "x"}); lack != "" {
		t.Error("without places there is no bound")
	}
}
