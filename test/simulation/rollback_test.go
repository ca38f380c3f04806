// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"testing"
	"time"
)

// oldAPIStories are times at which it is worst that the objects of our API are brought
// back from an earlier time. Each story changes a schedule that was drawn.
var oldAPIStories = map[string]func(*Schedule){
	"at any time": func(s *Schedule) {
		d := newDice(s.Seed, 14)
		s.Events = append(s.Events, rollBackAt(d), rollBackAt(d))
	},
	"from before the first status": func(s *Schedule) {
		d := newDice(s.Seed, 14)
		s.Events = append(s.Events, goingBack(d, d.between(0, 3*time.Second), d.between(5*time.Second, 2*time.Minute)))
	},
	"from before two restores": twoRestores,
	"from the midst of a restore": func(s *Schedule) {
		twoRestores(s)
		d := newDice(s.Seed, 14)
		at := slices.IndexFunc(s.Events, func(e Event) bool { return e.Kind == EventOldAPI })
		s.Events[at] = goingBack(d, d.between(80*time.Second, 2*time.Minute), 3*time.Minute)
	},
	"from the midst of a recovery": func(s *Schedule) {
		d := newDice(s.Seed, 14)
		s.Size, s.Deadly, s.Certificates, s.Automatic, s.Recovers = 3, true, false, true, false
		s.Events = []Event{
			{At: time.Minute, Kind: EventDisaster, A: s.Size, B: 0},
			goingBack(d, d.between(time.Minute, 150*time.Second), d.between(10*time.Second, 4*time.Minute)),
			{At: d.between(3*time.Minute, 5*time.Minute), Kind: EventDisaster, A: s.Size, B: 0},
		}
	},
	"of a cluster that was deleted since": func(s *Schedule) {
		d := newDice(s.Seed, 14)
		s.Events = append(s.Events, goingBack(d, d.between(0, time.Minute), 2*time.Minute),
			Event{At: d.between(time.Minute, 2*time.Minute), Kind: EventRecreate, B: d.IntN(4)})
	},
	"of a cluster that was created since": func(s *Schedule) {
		d := newDice(s.Seed, 14)
		s.Volumes, s.RetainDeleted = true, false
		s.Events = []Event{
			goingBack(d, d.between(0, 20*time.Second), 4*time.Minute),
			{At: d.between(25*time.Second, 40*time.Second), Kind: EventRecreate, B: d.IntN(4)},
			{At: d.between(time.Minute, 3*time.Minute), Kind: EventForceDeletePod, A: d.IntN(16)},
		}
	},
	"while members are hidden": func(s *Schedule) {
		d := newDice(s.Seed, 14)
		s.Deadly, s.Automatic = true, true
		s.Events = append(s.Events, goingBack(d, d.between(10*time.Second, time.Minute), 2*time.Minute))
		for range 4 {
			s.Events = append(s.Events,
				Event{At: d.between(100*time.Second, 3*time.Minute), Kind: EventHideMember, A: d.IntN(16), For: 2 * time.Minute},
				Event{At: d.between(time.Minute, 3*time.Minute), Kind: EventForceDeletePod, A: d.IntN(16)})
		}
	},
}

// goingBack saves the objects at a moment and brings them back d later.
func goingBack(dice *dice, at, d time.Duration) Event {
	return Event{At: at, Kind: EventOldAPI, A: dice.IntN(2), For: d}
}

// twoRestores are restores of two backups, one after the other, and an API from before.
func twoRestores(s *Schedule) {
	d := newDice(s.Seed, 14)
	s.Certificates, s.Automatic, s.Recovers = false, false, false
	s.Events = []Event{
		{At: time.Minute, Kind: EventBackup},
		goingBack(d, 70*time.Second, 4*time.Minute),
		{At: 80 * time.Second, Kind: EventRestore},
		{At: 150 * time.Second, Kind: EventBackup},
		{At: 160 * time.Second, Kind: EventRestore},
	}
}

// TestOldAPI plays the stories in which our API is brought back from an earlier time.
func TestOldAPI(t *testing.T) {
	n := max(*schedules/20, 1)
	if testing.Short() || raceEnabled {
		n = min(n, 10)
	}
	for name, story := range oldAPIStories {
		t.Run(name, func(t *testing.T) {
			variant := Variant{Name: name, story: story}
			total, failed := playAll(n, *firstSeed, variant, nil)
			t.Logf("%v\n%d violations", total, len(failed))
			if total.Faults["the API goes back"] == 0 {
				t.Error("the API never went back")
			}
			for _, r := range failed[:min(len(failed), 2)] {
				report(t, r, variant)
			}
		})
	}
}
