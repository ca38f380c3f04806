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
		{name: "takes the clock of its machine for that of Kubernetes", rules: "L1", wrap: onItsOwnClock, story: farClocks},
	}
}

// onItsOwnClock is a controller that compares times of objects with the clock of its machine.
func onItsOwnClock(m *manager.Manager, c cluster.Config) cluster.Config {
	c.Clock = m.Local
	return c
}

// farClocks sets the clocks of machines up to a day off, and loses a node with the volume of a member.
func farClocks(s *schedules.Schedule) {
	loseLocalVolume(s)
	s.Skew = 24 * time.Hour
}
