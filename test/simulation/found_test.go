// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
	"github.com/etcd-operator/etcd-operator/test/simulation/timeline"
)

var foundSchedules = flag.Int("found-schedules", 200, "how many schedules to play in which a cluster finds the PVCs of an earlier one")

// foundStories are ways in which a cluster comes to the PVCs of an earlier cluster of its name.
var foundStories = map[string]func(*schedules.Schedule){
	"a namespace comes back":                                   func(s *schedules.Schedule) { comesBack(s, true) },
	"a namespace comes back and its cluster is to begin empty": func(s *schedules.Schedule) { comesBack(s, false) },
	"deleted with its PVCs retained and created again":         func(s *schedules.Schedule) { createdAgain(s, true) },
	"deleted with its PVCs retained and created again empty":   func(s *schedules.Schedule) { createdAgain(s, false) },
}

// comesBack has a backup tool bring the namespace back, in the middle of what else happens.
func comesBack(s *schedules.Schedule, takesBack bool) {
	d := timeline.NewDice(s.Seed, 31)
	besideFound(s, takesBack)
	s.Events = append(s.Events, schedules.Event{
		At: d.Between(time.Minute, 3*time.Minute), Kind: schedules.EventReturn, A: d.IntN(16), B: d.IntN(16), For: d.Between(10*time.Second, time.Minute),
	})
}

// createdAgain has a user delete the cluster and create it again.
func createdAgain(s *schedules.Schedule, takesBack bool) {
	d := timeline.NewDice(s.Seed, 31)
	besideFound(s, takesBack)
	s.RetainDeleted = true
	s.Events = append(s.Events, schedules.Event{At: d.Between(time.Minute, 3*time.Minute), Kind: schedules.EventRecreate, B: d.IntN(4)})
}

// besideFound leaves out what needs the operator state of before, or destroys what is to come back.
func besideFound(s *schedules.Schedule, takesBack bool) {
	s.Volumes, s.TakesBack, s.Deadly, s.Recovers, s.Automatic, s.LocalVolumes = true, takesBack, false, false, false, false
	s.Events = slices.DeleteFunc(s.Events, func(e schedules.Event) bool { return !slices.Contains(besideOld, e.Kind) })
}

// TestFoundVolumes: a cluster never begins empty beside the data of an earlier one before a person says so. What is
// taken back has every write that was acknowledged.
func TestFoundVolumes(t *testing.T) {
	n := *foundSchedules / len(foundStories)
	if testing.Short() || raceEnabled {
		n = min(n, 5)
	}
	for name, story := range foundStories {
		t.Run(name, func(t *testing.T) {
			variant := Variant{Name: name, story: story}
			total, failed := playAll(n, *firstSeed, variant, nil)
			t.Logf("%v\n%d violations", total, len(failed))
			for _, r := range failed[:min(len(failed), 3)] {
				report(t, r, variant)
			}
		})
	}
}
