// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
	"github.com/etcd-operator/etcd-operator/test/simulation/timeline"
)

// retentionBesideRestores makes a backup every few seconds, and the retention keeps one or two, while backups are
// restored and other things go wrong.
func retentionBesideRestores(s *schedules.Schedule) {
	d := timeline.NewDice(s.Seed, 37)
	s.Certificates, s.Automatic, s.Recovers, s.KeepsBackups = false, false, false, 1+d.IntN(2)
	s.Events = nil
	every := d.Between(2*time.Second, 20*time.Second)
	for at := 40 * time.Second; at < 5*time.Minute; at += every {
		s.Events = append(s.Events, schedules.Event{At: at, Kind: schedules.EventBackup})
	}
	for range 2 + d.IntN(2) {
		at := d.Between(time.Minute, 4*time.Minute)
		s.Events = append(s.Events, schedules.Event{At: at, Kind: schedules.EventRestore})
		for range d.IntN(4) {
			s.Events = append(s.Events, schedules.Event{
				At: at + d.Between(-time.Second, 20*time.Second), A: d.IntN(1 << 16), B: d.IntN(1 << 16), For: d.Between(time.Second, time.Minute),
				Kind: timeline.Pick(d, schedules.EventFreeze, schedules.EventKillController, schedules.EventDeletePod, schedules.EventKillContainer, schedules.EventSlowStart),
			})
		}
	}
	slices.SortStableFunc(s.Events, func(a, b schedules.Event) int { return int(a.At - b.At) })
}

// TestRetentionBesideRestores: what a recovery reads and what a user holds stays, and a restore ends however often the
// schedule fires meanwhile.
func TestRetentionBesideRestores(t *testing.T) {
	n := max(*scheduleCount/20, 1)
	if testing.Short() || raceEnabled {
		n = min(n, 25)
	}
	variant := Variant{Name: "retention beside restores", story: retentionBesideRestores}
	total, failed := playAll(n, *firstSeed, variant, nil)
	t.Logf("%v\n%d violations", total, len(failed))
	if total.Recovered == 0 || total.Faults["prune a backup"] == 0 {
		t.Error("no restore has replaced a cluster, or no backup was pruned")
	}
	for _, r := range failed[:min(len(failed), 2)] {
		report(t, r, variant)
	}
}

// bugsOfRetention are mistakes with what a retention deletes.
func bugsOfRetention() []bug {
	return []bug{
		{name: "prunes the backup that a recovery reads", rules: "S6", story: retentionBesideRestores, wrap: holding(func(b *v1beta2.EtcdBackup, now time.Time) []string {
			return backup.Held(b, nil, nil, nil, now)
		})},
		{name: "prunes the backup that a user holds", rules: "S6", story: retentionBesideRestores, wrap: holding(func(b *v1beta2.EtcdBackup, now time.Time) []string {
			return backup.Held(&v1beta2.EtcdBackup{Status: b.Status}, nil, nil, nil, now)
		})},
	}
}

// holding is a controller of backups that holds something else.
func holding(holds func(*v1beta2.EtcdBackup, time.Time) []string) func(*manager.Manager, cluster.Config) cluster.Config {
	return func(m *manager.Manager, c cluster.Config) cluster.Config {
		m.W.Holds = func(b *v1beta2.EtcdBackup, _ []*v1beta2.EtcdBackup, _ []*v1beta2.EtcdRestore, _ []*v1beta2.EtcdCluster, now time.Time) []string {
			return holds(b, now)
		}
		return c
	}
}
