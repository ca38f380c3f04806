// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/controller/cluster"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// bugsOfFound are mistakes with the PVCs of an earlier cluster of the same name.
func bugsOfFound() []bug {
	return []bug{
		{name: "begins empty beside the data of an earlier cluster", rules: "S1", wrap: beginBesideData, story: func(s *schedules.Schedule) { createdAgain(s, true) }},
	}
}

// beginBesideData does not see what an earlier cluster has left.
func beginBesideData(_ *manager.Manager, c cluster.Config) cluster.Config {
	decide := c.Decide
	c.Decide = func(o planner.Observed) planner.Plan {
		o.Found = nil
		return decide(o)
	}
	c.Objects = ownOnly{c.Objects}
	return c
}

// ownOnly lists only PVCs that no earlier cluster has left.
type ownOnly struct{ cluster.Objects }

// ListPVCs implements cluster.Objects.
func (o ownOnly) ListPVCs(ctx context.Context, namespace, name string) ([]corev1.PersistentVolumeClaim, error) {
	live, err := o.GetCluster(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	all, err := o.Objects.ListPVCs(ctx, namespace, name)
	return slices.DeleteFunc(all, func(p corev1.PersistentVolumeClaim) bool { return resources.MayHoldFormerMember(live, &p) }), err
}
