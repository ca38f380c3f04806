// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestLossIsProvedByTheLastStatus: nothing goes on by itself on a status that another process
// has written over meanwhile: a member may have started since.
func TestLossIsProvedByTheLastStatus(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		since func(*v1beta2.EtcdCluster)
		stale bool
	}{
		{"nobody has written", func(*v1beta2.EtcdCluster) {}, false},
		{"somebody has", func(c *v1beta2.EtcdCluster) { c.ResourceVersion = "8" }, true},
		{"it is another cluster", func(c *v1beta2.EtcdCluster) { c.UID = "other" }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			live := stopped()
			live.cluster.ResourceVersion = "7"
			s := &seen{Observed: planner.Observed{Cluster: live.cluster.DeepCopy()}}
			test.since(live.cluster)
			err := (&Reconciler{Config: Config{Objects: live}}).confirmStatus(t.Context(), s)
			if test.stale != errors.Is(err, ErrStale) || (err != nil && !test.stale) {
				t.Errorf("the answer is %v", err)
			}
		})
	}
}

// TestUnseenMemberIsLookedFor: a member that is chosen to go because no pod of it is seen may
// have one that has only lost its labels, and lead the others.
func TestUnseenMemberIsLookedFor(t *testing.T) {
	t.Parallel()
	for _, reason := range []planner.RemoveReason{planner.RemoveScaleDown, planner.RemoveReplaced, planner.RemoveUnwanted} {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			live := stopped()
			live.pod.Labels = nil
			s := &seen{Observed: planner.Observed{Cluster: live.cluster}}
			r := &Reconciler{Config: Config{Objects: live, Etcd: live, Gate: live, Recorder: live}}
			err := r.removeMember(t.Context(), types.NamespacedName{}, s, planner.RemoveMember{ID: 1, Name: live.pod.Name, Reason: reason})
			if !errors.Is(err, ErrStale) || !slices.Contains(live.calls, "update pod") {
				t.Errorf("it did %q and answers %v", live.calls, err)
			}
		})
	}
}

// TestSeedIsGone: that the data was lost with a seed is recorded only if the live API has
// neither its pod nor its volume.
func TestSeedIsGone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		pod, claim bool
	}{{"both are gone", false, false}, {"its pod is there", true, false}, {"its volume is there", false, true}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			live := stopped()
			name := live.pod.Name
			live.claim = resources.ReseedClaim(live.cluster, name)
			if !test.pod {
				live.pod = nil
			}
			if !test.claim {
				live.claim = nil
			}
			s := &seen{Observed: planner.Observed{Cluster: live.cluster}}
			err := (&Reconciler{Config: Config{Objects: live}}).confirmGone(t.Context(), s, name)
			if there := test.pod || test.claim; errors.Is(err, ErrStale) != there || (err != nil && !there) {
				t.Errorf("the answer is %v", err)
			}
		})
	}
}
