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

// oldAPIStories are times at which it is worst that the objects of our API are brought
// back from an earlier time. Each story changes a schedule that was drawn.
var oldAPIStories = map[string]func(*schedules.Schedule){
	"at any time": func(s *schedules.Schedule) {
		d := timeline.NewDice(s.Seed, 14)
		s.Events = append(s.Events, schedules.RollBackAt(d), schedules.RollBackAt(d))
	},
	"from before the first status": func(s *schedules.Schedule) {
		d := timeline.NewDice(s.Seed, 14)
		s.Events = append(s.Events, goingBack(d, d.Between(0, 3*time.Second), d.Between(5*time.Second, 2*time.Minute)))
	},
	"made again from the record": func(s *schedules.Schedule) {
		d := timeline.NewDice(s.Seed, 14)
		for range 3 {
			s.Events = append(s.Events, schedules.Event{At: d.Between(time.Second, 5*time.Minute), Kind: schedules.EventLoseAPI, A: d.IntN(2)})
		}
	},
	"made again from the record in the midst of a restore": func(s *schedules.Schedule) {
		twoRestores(s)
		d := timeline.NewDice(s.Seed, 14)
		s.Events = slices.DeleteFunc(s.Events, func(e schedules.Event) bool { return e.Kind == schedules.EventOldAPI })
		for range 2 {
			s.Events = append(s.Events, schedules.Event{At: d.Between(80*time.Second, 200*time.Second), Kind: schedules.EventLoseAPI, A: d.IntN(2)})
		}
	},
	"from before two restores": twoRestores,
	"from the midst of a restore": func(s *schedules.Schedule) {
		twoRestores(s)
		d := timeline.NewDice(s.Seed, 14)
		at := slices.IndexFunc(s.Events, func(e schedules.Event) bool { return e.Kind == schedules.EventOldAPI })
		s.Events[at] = goingBack(d, d.Between(80*time.Second, 2*time.Minute), 3*time.Minute)
	},
	"from the midst of a recovery": func(s *schedules.Schedule) {
		d := timeline.NewDice(s.Seed, 14)
		s.Size, s.Deadly, s.Certificates, s.Automatic, s.Recovers = 3, true, false, true, false
		s.Events = []schedules.Event{
			{At: time.Minute, Kind: schedules.EventDisaster, A: s.Size, B: 0},
			goingBack(d, d.Between(time.Minute, 150*time.Second), d.Between(10*time.Second, 4*time.Minute)),
			{At: d.Between(3*time.Minute, 5*time.Minute), Kind: schedules.EventDisaster, A: s.Size, B: 0},
		}
	},
	"of a cluster that was deleted since": func(s *schedules.Schedule) {
		d := timeline.NewDice(s.Seed, 14)
		s.Events = append(s.Events, goingBack(d, d.Between(0, time.Minute), 2*time.Minute),
			schedules.Event{At: d.Between(time.Minute, 2*time.Minute), Kind: schedules.EventRecreate, B: d.IntN(4)})
	},
	"of a cluster that was being deleted": func(s *schedules.Schedule) {
		d := timeline.NewDice(s.Seed, 14)
		s.Volumes, s.RetainDeleted = true, false
		s.Events = []schedules.Event{
			goingBack(d, d.Between(30*time.Second, 40*time.Second), 30*time.Second),
			{At: 45 * time.Second, Kind: schedules.EventFreeze, For: time.Minute}, // the controller does not see the deletion
			{At: 46 * time.Second, Kind: schedules.EventRecreate, B: d.IntN(4)},
			goingBack(d, 46500*time.Millisecond, d.Between(time.Minute, 2*time.Minute)),
		}
	},
	"of a cluster that was created since": func(s *schedules.Schedule) {
		d := timeline.NewDice(s.Seed, 14)
		s.Volumes, s.RetainDeleted = true, false
		s.Events = []schedules.Event{
			goingBack(d, d.Between(0, 20*time.Second), 4*time.Minute),
			{At: d.Between(25*time.Second, 40*time.Second), Kind: schedules.EventRecreate, B: d.IntN(4)},
			{At: d.Between(time.Minute, 3*time.Minute), Kind: schedules.EventForceDeletePod, A: d.IntN(16)},
		}
	},
	"beside a majority that joined since": func(s *schedules.Schedule) {
		d := timeline.NewDice(s.Seed, 14)
		s.Size, s.Deadly, s.Certificates, s.Automatic, s.Recovers = timeline.Pick(d, 3, 5, 5), true, false, d.Chance(50), false
		s.Events = []schedules.Event{
			goingBack(d, d.Between(50*time.Second, time.Minute), d.Between(30*time.Second, time.Minute)),
			{At: d.Between(time.Minute, 80*time.Second), Kind: schedules.EventDisaster, A: d.IntN(16), B: d.IntN(16)},
			{At: d.Between(80*time.Second, 100*time.Second), Kind: schedules.EventSever, A: d.IntN(16), B: 16, For: d.Between(30*time.Second, 6*time.Minute)},
			{At: d.Between(90*time.Second, 3*time.Minute), Kind: schedules.EventDeletePod, A: d.IntN(16)},
			{At: d.Between(90*time.Second, 3*time.Minute), Kind: schedules.EventDeletePod, A: d.IntN(16)},
			{At: 8 * time.Minute, Kind: schedules.EventResume},
		}
		for range 4 {
			s.Events = append(s.Events, schedules.Event{At: d.Between(100*time.Second, 4*time.Minute), Kind: schedules.EventRecover})
		}
	},
	"while members are hidden": func(s *schedules.Schedule) {
		d := timeline.NewDice(s.Seed, 14)
		s.Deadly, s.Automatic = true, true
		s.Events = append(s.Events, goingBack(d, d.Between(10*time.Second, time.Minute), 2*time.Minute))
		for range 4 {
			s.Events = append(s.Events,
				schedules.Event{At: d.Between(100*time.Second, 3*time.Minute), Kind: schedules.EventHideMember, A: d.IntN(16), For: 2 * time.Minute},
				schedules.Event{At: d.Between(time.Minute, 3*time.Minute), Kind: schedules.EventForceDeletePod, A: d.IntN(16)})
		}
	},
}

// goingBack saves the objects at a moment and brings them back d later.
func goingBack(dice *timeline.Dice, at, d time.Duration) schedules.Event {
	return schedules.Event{At: at, Kind: schedules.EventOldAPI, A: dice.IntN(2), For: d}
}

// twoRestores are restores of two backups, one after the other, and an API from before.
func twoRestores(s *schedules.Schedule) {
	d := timeline.NewDice(s.Seed, 14)
	s.Certificates, s.Automatic, s.Recovers = false, false, false
	s.Events = []schedules.Event{
		{At: time.Minute, Kind: schedules.EventBackup},
		goingBack(d, 70*time.Second, 4*time.Minute),
		{At: 80 * time.Second, Kind: schedules.EventRestore},
		{At: 150 * time.Second, Kind: schedules.EventBackup},
		{At: 160 * time.Second, Kind: schedules.EventRestore},
	}
}

func init() {
	oldAPIStories["from before two restores, and the record is lost"] = withoutRecord(twoRestores)
	oldAPIStories["from the midst of a restore, and the record is lost"] = withoutRecord(oldAPIStories["from the midst of a restore"])
	oldAPIStories["from the midst of a recovery, and the record is lost"] = withoutRecord(oldAPIStories["from the midst of a recovery"])
	oldAPIStories["from before the first status, and the record is lost"] = withoutRecord(oldAPIStories["from before the first status"])
}

// withoutRecord loses the record, too, around the rollback of the operator state.
func withoutRecord(story func(*schedules.Schedule)) func(*schedules.Schedule) {
	return func(s *schedules.Schedule) {
		story(s)
		d := timeline.NewDice(s.Seed, 23)
		var lost []schedules.Event
		for _, e := range s.Events {
			if e.Kind != schedules.EventOldAPI {
				continue
			}
			for range 4 {
				lost = append(lost, schedules.Event{
					At: e.At + e.For + d.Between(0, 30*time.Second) - time.Second, Kind: schedules.EventLoseRecord, A: d.IntN(1 << 16), B: d.IntN(1 << 16),
				})
			}
		}
		s.Events = append(s.Events, lost...)
	}
}

// TestOldAPI plays the stories in which our API is brought back from an earlier time.
func TestOldAPI(t *testing.T) {
	n := max(*scheduleCount/20, 1)
	if testing.Short() || raceEnabled {
		n = min(n, 10)
	}
	for name, story := range oldAPIStories {
		t.Run(name, func(t *testing.T) {
			variant := Variant{Name: name, story: story}
			total, failed := playAll(n, *firstSeed, variant, nil)
			t.Logf("%v\n%d violations", total, len(failed))
			if total.Faults["operator state rolled back"] == 0 {
				t.Error("no schedule rolled the operator state back")
			}
			for _, r := range failed[:min(len(failed), 2)] {
				report(t, r, variant)
			}
		})
	}
}
