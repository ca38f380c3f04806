// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// membersAway are members. Some of them respond.
type membersAway struct {
	Objects
	Etcd
	responds []string
}

// ListPods implements Objects.
func (*membersAway) ListPods(context.Context, string, string) ([]corev1.Pod, error) { return nil, nil }

// Statuses implements Etcd.
func (a *membersAway) Statuses(_ context.Context, target etcd.Target) map[string]etcd.StatusResult {
	all := map[string]etcd.StatusResult{}
	for _, e := range target.Endpoints {
		all[e.Name] = etcd.StatusResult{Err: etcd.ErrUnavailable}
		if slices.Contains(a.responds, e.Name) {
			all[e.Name] = etcd.StatusResult{}
		}
	}
	return all
}

// TestNoneRespondsBeforeTheCutover: a restore without a pre-restore backup asks every old member again.
func TestNoneRespondsBeforeTheCutover(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		members, responds []string
		want              error
	}{
		"no pod is left":      {},
		"no member responds":  {members: []string{"c-a", "c-b"}},
		"one member responds": {members: []string{"c-a", "c-b"}, responds: []string{"c-b"}, want: reconcile.ErrStale},
	} {
		a := &membersAway{responds: test.responds}
		r := &run{Reconciler: &Reconciler{Config: Config{Objects: a, Etcd: a}}, seen: &seen{Observed: planner.Observed{Cluster: &v1beta2.EtcdCluster{}}}}
		for _, member := range test.members {
			r.seen.target.Endpoints = append(r.seen.target.Endpoints, etcd.Endpoint{Name: member})
		}
		if err := requireNoneResponds(t.Context(), r); !errors.Is(err, test.want) {
			t.Errorf("%s: error %v, want %v", name, err, test.want)
		}
	}
}
