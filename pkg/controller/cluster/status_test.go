// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// TestStepAfterAWaitOfSeconds: a step does not write the status only to take back what the cluster
// waited for seconds ago. After a longer wait it does.
func TestStepAfterAWaitOfSeconds(t *testing.T) {
	t.Parallel()
	clock := noon()
	g := &guarded{oneMember: stopped()}
	g.cluster.Spec.Replicas = ptr.To[int32](3)
	r := &Reconciler{Config: Config{Objects: g, Gate: g, Recorder: g, Clock: clock}}
	key := types.NamespacedName{Namespace: g.cluster.Namespace, Name: g.cluster.Name}
	written := func(plan planner.Plan) *v1beta2.ClusterStatus {
		t.Helper()
		g.said = nil
		s := &seen{Observed: planner.Observed{Cluster: g.cluster, Now: clock.Now()}}
		if err := writeStatus(t.Context(), &run{Reconciler: r, key: key, seen: s}, plan); err != nil {
			t.Fatal(err)
		}
		if g.said != nil {
			g.cluster.Status = *g.said
		}
		return g.said
	}
	step := planner.Plan{Actions: []planner.Action{planner.PromoteMember{ID: 1}}, RequeueAfter: time.Millisecond}
	wait := planner.Plan{Wait: &planner.Wait{Reason: "WaitingForPod", Message: "a pod"}, RequeueAfter: time.Second}

	if s := written(wait); s == nil || s.BlockedBy == nil {
		t.Fatalf("the wait was not written: %+v", s)
	}
	clock.SetTime(clock.Now().Add(2 * time.Second))
	if s := written(step); s != nil {
		t.Errorf("the step wrote %+v", s)
	}
	clock.SetTime(clock.Now().Add(time.Minute))
	if s := written(step); s == nil || s.BlockedBy != nil {
		t.Errorf("a wait of a minute stays: %+v", s)
	}
}
