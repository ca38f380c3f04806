// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedules

import (
	"time"

	"github.com/etcd-operator/etcd-operator/test/simulation/timeline"
)

// spaceEvents fill the database now and then. For later a user makes room: B says how. They are drawn
// apart from the others, so that schedules without them stay what they were.
func spaceEvents(s *Schedule) {
	d := timeline.NewDice(s.Seed, 24)
	if !d.Chance(15) {
		return
	}
	e := Event{At: d.Between(10*time.Second, 4*time.Minute), Kind: EventFill, A: d.IntN(1 << 16), B: d.IntN(1 << 16), For: d.Between(time.Second, 4*time.Minute)}
	s.Events = append(s.Events, e, Event{At: e.At + e.For + time.Minute, Kind: EventResume}) // all faults end with the last event
}
