// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
	"github.com/etcd-operator/etcd-operator/test/simulation/timeline"
)

// restoreBesideStart deletes and recreates the cluster, and restores a backup while its bootstrap
// member starts and something else goes wrong.
func restoreBesideStart(s *schedules.Schedule) {
	d := timeline.NewDice(s.Seed, 31)
	s.Certificates, s.Automatic, s.Recovers = false, d.Chance(20), false
	s.Events = []schedules.Event{{At: 40 * time.Second, Kind: schedules.EventBackup}}
	at := time.Minute
	for range 1 + d.IntN(2) {
		s.Events = append(s.Events, schedules.Event{At: at, Kind: schedules.EventRecreate, B: d.IntN(4)})
		for range 1 + d.IntN(3) {
			s.Events = append(s.Events, schedules.Event{At: at + d.Between(100*time.Millisecond, 20*time.Second), Kind: schedules.EventRestore})
		}
		for range d.IntN(4) {
			s.Events = append(s.Events, schedules.Event{
				At: at + d.Between(-time.Second, 20*time.Second), A: d.IntN(1 << 16), B: d.IntN(1 << 16), For: d.Between(time.Second, time.Minute),
				Kind: timeline.Pick(d, schedules.EventCall, schedules.EventFreeze, schedules.EventSecondController, schedules.EventKillController,
					schedules.EventForceDeletePod, schedules.EventDeletePod, schedules.EventKillContainer, schedules.EventSlowStart,
					schedules.EventLoseRecord, schedules.EventHideMember),
			})
		}
		at += d.Between(20*time.Second, time.Minute)
	}
	slices.SortStableFunc(s.Events, func(a, b schedules.Event) int { return int(a.At - b.At) })
}

// TestRestoreBesideStart plays schedules in which a restore begins before its cluster has started.
func TestRestoreBesideStart(t *testing.T) {
	n := max(*scheduleCount/4, 1)
	if testing.Short() || raceEnabled {
		n = min(n, 25)
	}
	variant := Variant{Name: "restore beside a start", story: restoreBesideStart}
	total, failed := playAll(n, *firstSeed, variant, nil)
	t.Logf("%v\n%d violations", total, len(failed))
	if total.Recovered == 0 {
		t.Error("no restore has replaced a cluster")
	}
	for _, r := range failed[:min(len(failed), 2)] {
		report(t, r, variant)
	}
}
