// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/cluster"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// bugsOfSpace are mistakes with a database that is full.
func bugsOfSpace() []bug {
	return []bug{
		{name: "leaves the alarm of a database that has room again", rules: "L1", wrap: deciding(leaveAlarm), story: fillAnd(raiseQuota)},
		{name: "disarms the alarm of a full database", rules: "L2", wrap: deciding(believeEmpty), story: fillAnd(defragment)},
		{name: "disarms the alarm while a full member is away", rules: "L2", wrap: deciding(believeAway), story: hideFull},
		{name: "takes the declared quota for that of the members", rules: "L2", wrap: deciding(believeDeclared), story: fillAnd(raiseQuota)},
		{name: "reports Available while etcd rejects writes", rules: "L2", wrap: writing(func(_ *manager.Manager, c cluster.Config) cluster.Objects { return availableWithQuorum{c.Objects} }), story: fillAnd(defragment)},
	}
}

// B of an event that fills the database: how a user makes room.
const (
	raiseQuota = 0
	defragment = 1
)

// fillAnd fills the database of a cluster to which nothing else happens, and makes room later.
func fillAnd(makeRoom int) func(*schedules.Schedule) {
	return func(s *schedules.Schedule) {
		s.Size, s.Version = 3, schedules.VersionLines[0][0]
		s.Events = []schedules.Event{
			{At: time.Minute, Kind: schedules.EventFill, B: makeRoom, For: 4 * time.Minute},
			{At: 7 * time.Minute, Kind: schedules.EventResume}, // all faults end with the last event
		}
	}
}

// hideFull hides a member that is full from the controller, while the user makes room.
func hideFull(s *schedules.Schedule) {
	fillAnd(defragment)(s)
	s.Events = slices.Insert(s.Events, 1, schedules.Event{At: 5*time.Minute - 10*time.Second, Kind: schedules.EventHideMember, A: 1, For: 10 * time.Minute})
}

// leaveAlarm does nothing about an alarm.
func leaveAlarm(_ *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
	o.Etcd.Members = slices.Clone(o.Etcd.Members)
	for i := range o.Etcd.Members {
		o.Etcd.Members[i].Alarms = nil
	}
	return decide(o)
}

// believeEmpty knows no size of a database.
func believeEmpty(_ *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
	o.Etcd.Members = slices.Clone(o.Etcd.Members)
	for i := range o.Etcd.Members {
		o.Etcd.Members[i].DBSize = 0
	}
	return decide(o)
}

// believeAway takes the database of a member that does not serve for a small one.
func believeAway(_ *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
	o.Etcd.Members = slices.Clone(o.Etcd.Members)
	for i := range o.Etcd.Members {
		if m := &o.Etcd.Members[i]; m.Health != planner.Healthy {
			m.DBSize = 1
		}
	}
	return decide(o)
}

// believeDeclared knows no quota but the declared one.
func believeDeclared(_ *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
	o.Etcd.Members = slices.Clone(o.Etcd.Members)
	for i := range o.Etcd.Members {
		o.Etcd.Members[i].Quota = resources.QuotaBackendBytes(o.Cluster)
	}
	return decide(o)
}

// availableWithQuorum takes a quorum that responds for one that takes writes.
type availableWithQuorum struct{ cluster.Objects }

// UpdateClusterStatus implements cluster.Objects.
func (o availableWithQuorum) UpdateClusterStatus(ctx context.Context, c *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	for _, condition := range c.Status.Conditions {
		if condition.Type == v1beta2.ClusterConditionAvailable && condition.Reason == string(planner.ReasonDatabaseFull) {
			c = said(c, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue)
		}
	}
	return o.Objects.UpdateClusterStatus(ctx, c)
}
