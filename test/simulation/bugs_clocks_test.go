// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/controller/cluster"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// bugsOfClocks are mistakes about clocks that differ.
func bugsOfClocks() []bug {
	return []bug{
		{name: "takes the clock of its machine for that of Kubernetes", rules: "L1 T1", wrap: onItsOwnClock, story: farClocks},
	}
}

// onItsOwnClock is a controller that compares times of objects with the clock of its machine.
func onItsOwnClock(m *manager.Manager, c cluster.Config) cluster.Config {
	c.Clock = m.Local
	return c
}

// farClocks lets the clocks of machines be up to a day off, while a node goes.
func farClocks(s *schedules.Schedule) {
	s.Size, s.Volumes, s.Deadly, s.Evicts, s.Certificates, s.Skew, s.Version = 3, false, false, false, true, 24*time.Hour, schedules.VersionLines[0][0]
	s.Events = []schedules.Event{
		{At: time.Minute, Kind: schedules.EventNodeLost, A: int(s.Seed)},
		{At: 20 * time.Minute, Kind: schedules.EventResume},
	}
}
