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

// withoutLabels takes labels from pods during a story.
func withoutLabels(story func(*schedules.Schedule)) func(*schedules.Schedule) {
	return func(s *schedules.Schedule) {
		story(s)
		d := timeline.NewDice(s.Seed, 37)
		for range 12 {
			s.Events = append(s.Events, schedules.Event{At: d.Between(time.Minute, 4*time.Minute), Kind: schedules.EventRelabel, A: d.IntN(1 << 16)})
		}
		slices.SortStableFunc(s.Events, func(a, b schedules.Event) int { return int(a.At - b.At) })
	}
}

// oneDisaster loses a quorum, which the cluster recovers from by itself.
func oneDisaster(s *schedules.Schedule) {
	d := timeline.NewDice(s.Seed, 14)
	s.Size, s.Deadly, s.Certificates, s.Automatic, s.Recovers = 3, true, false, true, false
	s.Events = []schedules.Event{{At: time.Minute, Kind: schedules.EventDisaster, A: s.Size, B: d.IntN(16)}}
}

// TestPodsLoseLabelsDuringRecoveries plays restores and recoveries while pods lose their labels.
func TestPodsLoseLabelsDuringRecoveries(t *testing.T) {
	n := max(*scheduleCount/20, 1)
	if testing.Short() || raceEnabled {
		n = min(n, 10)
	}
	for name, story := range map[string]func(*schedules.Schedule){"two restores": twoRestores, "one disaster": oneDisaster} {
		t.Run(name, func(t *testing.T) {
			variant := Variant{Name: name, story: withoutLabels(story)}
			total, failed := playAll(n, *firstSeed, variant, nil)
			t.Logf("%v\n%d violations", total, len(failed))
			if total.Recovered == 0 {
				t.Error("no recovery has replaced a cluster")
			}
			for _, r := range failed[:min(len(failed), 2)] {
				report(t, r, variant)
			}
		})
	}
}
