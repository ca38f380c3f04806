// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
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
