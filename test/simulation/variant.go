// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"github.com/etcd-operator/etcd-operator/pkg/controller/cluster"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// Variant is the controller with something changed about it. The zero value is the
// controller as it is; others are made by tests only, to show that the checks notice.
type Variant struct {
	Name string
	// wrap changes what the reconciler of a controller is given.
	wrap func(*manager.Manager, cluster.Config) cluster.Config
	// admitsAll is true if users may declare what validation rejects.
	admitsAll bool
	// story, if set, changes a schedule after it was drawn.
	story func(*schedules.Schedule)
}

// schedule draws a schedule for the variant.
func (v *Variant) schedule(seed uint64) *schedules.Schedule {
	s := schedules.New(seed)
	if v.story != nil {
		v.story(s)
	}
	return s
}

// decider is a planner.
type decider func(planner.Observed) planner.Plan

// deciding is a controller that decides otherwise: change is given the planner as it
// is, and may change its observation and its plan.
func deciding(change func(m *manager.Manager, c cluster.Config, o planner.Observed, decide decider) planner.Plan) func(*manager.Manager, cluster.Config) cluster.Config {
	return func(m *manager.Manager, c cluster.Config) cluster.Config {
		decide := c.Decide
		c.Decide = func(o planner.Observed) planner.Plan { return change(m, c, o, decide) }
		return c
	}
}

// doing is a controller that does something else than was decided.
func doing(change func(planner.Observed, planner.Plan) planner.Plan) func(*manager.Manager, cluster.Config) cluster.Config {
	return deciding(func(_ *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
		return change(o, decide(o))
	})
}

// writing is a controller that writes otherwise.
func writing(change func(*manager.Manager, cluster.Config) cluster.Objects) func(*manager.Manager, cluster.Config) cluster.Config {
	return func(m *manager.Manager, c cluster.Config) cluster.Config {
		c.Objects = change(m, c)
		return c
	}
}
