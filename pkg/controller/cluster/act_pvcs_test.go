// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestPreparedPVCStaysWithoutItsCluster: garbage collection deletes the pods of a cluster that the API
// has lost. A prepared PVC whose pod ends for that cause stays, as every other PVC does.
func TestPreparedPVCStaysWithoutItsCluster(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		since   func(*oneMember)
		deletes bool
	}{
		"the cluster exists":        {func(*oneMember) {}, true},
		"the cluster was recreated": {func(m *oneMember) { m.cluster.UID = "other" }, false},
		"the cluster is deleted":    {func(m *oneMember) { m.cluster.DeletionTimestamp = ptr.To(metav1.Now()) }, false},
		"a member uses the PVC":     {func(m *oneMember) { m.pvc = resources.PVC(m.cluster, "c-a") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := &hiddenRecoveryMember{oneMember: stopped()}
			live.pvc = resources.PreparedPVC(live.cluster, "c-a")
			s := &seen{Observed: planner.Observed{Cluster: live.cluster.DeepCopy()}}
			test.since(live.oneMember)
			live.pvc.UID = "pvc-uid"
			r := &run{Reconciler: &Reconciler{Config: Config{Objects: live}}, seen: s}
			err := deletePVC(t.Context(), r, planner.DeletePVC{Name: "c-a", UID: "pvc-uid", Why: planner.DeletePVCPrepared})
			if deleted := slices.Contains(live.calls, "delete PVC"); deleted != test.deletes || errors.Is(err, reconcile.ErrStale) == test.deletes {
				t.Errorf("it did %q, error %v", live.calls, err)
			}
		})
	}
}
