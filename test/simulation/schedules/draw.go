// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedules

import (
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/test/simulation/timeline"
)

// encrypt makes the cluster of some schedules one with certificates, and asks for
// another CA now and then. It draws from dice of its own, so that the other
// schedules stay what they were.
func (s *Schedule) encrypt() {
	d := timeline.NewDice(s.Seed, 3)
	if !d.Chance(30) {
		return
	}
	s.Certificates = true
	for range d.IntN(2) {
		e := Event{At: d.Between(0, 6*time.Minute), Kind: EventRotateCA, A: d.IntN(1 << 16), B: d.IntN(1 << 16), For: d.Between(time.Second, 50*time.Second)}
		if d.Chance(25) {
			e.Kind = EventDeleteSecret
		}
		s.Events = append(s.Events, e)
	}
}

// recoveryEvents are drawn apart from the others, so that schedules without them stay
// what they were. A cluster whose CA is rotated meanwhile is left out.
func recoveryEvents(s *Schedule) {
	d := timeline.NewDice(s.Seed, 3)
	rotates := slices.ContainsFunc(s.Events, func(e Event) bool { return e.Kind == EventRotateCA || e.Kind == EventDeleteSecret })
	if !s.Deadly || rotates || !d.Chance(75) {
		return
	}
	s.Automatic, s.Recovers = d.Chance(40), d.Chance(60)
	at := d.Between(10*time.Second, 5*time.Minute)
	s.Events = append(s.Events, Event{At: at, Kind: EventDisaster, A: d.IntN(1 << 16), B: d.IntN(1 << 16)})
	for range 1 + d.IntN(4) {
		s.Events = append(s.Events, Event{At: at + d.Between(0, 2*time.Minute), Kind: EventRecover})
	}
}

// restoreEvents are drawn apart from the others, so that schedules without them stay what
// they were.
func restoreEvents(s *Schedule) {
	d := timeline.NewDice(s.Seed, 4)
	if !s.Deadly || s.Certificates || !d.Chance(60) {
		return
	}
	at := d.Between(10*time.Second, 4*time.Minute)
	for range 1 + d.IntN(2) {
		s.Events = append(s.Events, Event{At: at, Kind: EventBackup})
		at += d.Between(0, time.Minute)
	}
	for range d.IntN(3) {
		s.Events = append(s.Events, Event{At: at + d.Between(0, 2*time.Minute), Kind: EventRestore})
	}
	if d.Chance(60) {
		s.Automatic = true
		s.Events = append(s.Events, Event{At: at + d.Between(0, 2*time.Minute), Kind: EventTotalLoss})
	}
}

// rollBackEvents bring the objects of our API back from an earlier time, now and then:
// its own etcd was restored from a backup. Kubernetes and the managed etcd stay as they
// are. They are drawn apart from the others, so that schedules without them stay what they
// were.
func rollBackEvents(s *Schedule) {
	d := timeline.NewDice(s.Seed, 13)
	if !d.Chance(15) {
		return
	}
	for range 1 + d.IntN(2) {
		s.Events = append(s.Events, RollBackAt(d))
	}
}

// RollBackAt saves the objects at a moment and brings them back For later. With an odd A
// the resource versions go back, too.
func RollBackAt(d *timeline.Dice) Event {
	e := Event{At: d.Between(0, 4*time.Minute), Kind: EventOldAPI, A: d.IntN(1 << 16), B: d.IntN(1 << 16), For: d.Between(time.Second, 4*time.Minute)}
	if d.Chance(30) {
		e.At = d.Between(0, 15*time.Second) // much happens while a cluster starts
	}
	return e
}

// recordEvents lose the record of the cluster, now and then, also while it starts and while
// it recovers. They are drawn apart from the others, so that schedules without them stay what
// they were.
func recordEvents(s *Schedule) {
	d := timeline.NewDice(s.Seed, 22)
	if !d.Chance(25) {
		return
	}
	for range 1 + d.IntN(3) {
		e := Event{At: d.Between(0, 6*time.Minute), Kind: EventLoseRecord, A: d.IntN(1 << 16), B: d.IntN(1 << 16)}
		if d.Chance(30) {
			e.At = d.Between(0, 15*time.Second) // much happens while a cluster starts
		}
		if i := slices.IndexFunc(s.Events, func(e Event) bool {
			return e.Kind == EventRecover || e.Kind == EventRestore || e.Kind == EventTotalLoss
		}); i >= 0 && d.Chance(60) {
			e.At = s.Events[i].At + d.Between(0, time.Minute)
		}
		s.Events = append(s.Events, e)
	}
}

// New draws a schedule.
func New(seed uint64) *Schedule {
	d := timeline.NewDice(seed, 1)
	s := &Schedule{
		Seed:          seed,
		Size:          timeline.Pick(d, 1, 3, 3, 3, 3, 5, 5, 2, 4),
		Volumes:       d.Chance(50),
		LearnersReady: d.Chance(50),
		Deadly:        d.Chance(20),
		RetainDeleted: d.Chance(25),
		RetainScaled:  d.Chance(25),
	}
	line := VersionLines[0]
	if d.Chance(20) {
		line = VersionLines[1]
	}
	s.Version = line[d.IntN(len(line)-1)]
	total := 0
	for _, w := range weights {
		total += w
	}
	length := d.Between(30*time.Second, 6*time.Minute)
	for range 2 + d.IntN(14) {
		s.Events = append(s.Events, s.draw(d, total, length))
	}
	s.encrypt()
	recoveryEvents(s)
	restoreEvents(s)
	volumeEvents(s)
	wipeEvents(s)
	damageEvents(s)
	rollBackEvents(s)
	recordEvents(s)
	severEvents(s)
	hangEvents(s)
	admissionEvents(s)
	lastingEvents(s)
	drainEvents(s)
	spaceEvents(s)
	secretEvents(s)
	stays(s)
	if clocks := timeline.NewDice(seed, 20); clocks.Chance(15) {
		s.Skew = timeline.Pick(clocks, Skews...)
	}
	slices.SortStableFunc(s.Events, func(a, b Event) int { return int(a.At - b.At) })
	return s
}

func (s *Schedule) draw(d *timeline.Dice, total int, length time.Duration) Event {
	e := Event{At: d.Between(0, length), A: d.IntN(1 << 16), B: d.IntN(1 << 16), For: d.Between(time.Second, 90*time.Second)}
	if d.Chance(40) {
		e.At = d.Between(0, 15*time.Second) // much happens while a cluster starts
	}
	if d.Chance(30) && len(s.Events) > 0 {
		e.At = s.Events[len(s.Events)-1].At + d.Between(0, 3*time.Second) // troubles come together
	}
	at := d.IntN(total)
	for k, w := range weights {
		if at -= w; at < 0 {
			e.Kind = EventKind(k)
			break
		}
	}
	return e
}

// severEvents are drawn apart from the others. Cuts that last until Kubernetes deletes pods
// are for schedules in which data may be lost.
func severEvents(s *Schedule) {
	d := timeline.NewDice(s.Seed, 15)
	if !d.Chance(15) {
		return
	}
	e := Event{At: d.Between(20*time.Second, 4*time.Minute), Kind: EventSever, A: d.IntN(1 << 16), B: d.IntN(1 << 16), For: d.Between(2*time.Second, 2*time.Minute)}
	if s.Deadly && d.Chance(70) {
		e.For = EvictAfter + d.Between(0, 4*time.Minute)
	}
	s.Events = append(s.Events, e, Event{At: e.At + e.For, Kind: EventResume}) // all faults end with the last event
}

// hangEvents let the disks of some members take no writes for a while, often together with
// a declaration of fewer members. They are drawn apart from the others, so that schedules
// without them stay what they were.
func hangEvents(s *Schedule) {
	d := timeline.NewDice(s.Seed, 17)
	if !d.Chance(15) {
		return
	}
	at := d.Between(10*time.Second, 4*time.Minute)
	for range 1 + d.IntN(2) {
		s.Events = append(s.Events, Event{At: at + d.Between(0, 3*time.Second), Kind: EventHang, A: d.IntN(1 << 16), For: d.Between(5*time.Second, 3*time.Minute)})
	}
	if d.Chance(60) {
		kind := timeline.Pick(d, EventScale, EventScale, EventVersion, EventRestart)
		s.Events = append(s.Events, Event{At: at + d.Between(0, 30*time.Second), Kind: kind, A: d.IntN(1 << 16), B: d.IntN(1 << 16)})
	}
}

// admissionEvents let a policy change pods, or a quota reject them for a while. They are drawn
// apart from the others, so that schedules without them stay what they were.
func admissionEvents(s *Schedule) {
	d := timeline.NewDice(s.Seed, 19)
	s.PodsChanged = d.Chance(15)
	if d.Chance(6) {
		e := Event{At: d.Between(5*time.Second, 5*time.Minute), Kind: EventDeleteNamespace, A: d.IntN(1 << 16)}
		s.Events = append(s.Events, e, Event{At: e.At + 3*time.Minute, Kind: EventResume})
	}
	if !d.Chance(20) {
		return
	}
	e := Event{At: d.Between(0, 4*time.Minute), Kind: EventReject, A: d.IntN(1 << 16), For: d.Between(20*time.Second, 6*time.Minute)}
	if d.Chance(50) {
		e.At = d.Between(0, 15*time.Second)
	}
	s.Events = append(s.Events, e, Event{At: e.At + e.For, Kind: EventResume}) // all faults end with the last event
}

// lastingEvents let one fault last for half an hour, in which nothing else happens at the end:
// everything that can be served is served, and the controller comes to rest. They are drawn
// apart from the others, so that schedules without them stay what they were.
func lastingEvents(s *Schedule) {
	d := timeline.NewDice(s.Seed, 21)
	if !d.Chance(8) {
		return
	}
	e := Event{At: d.Between(20*time.Second, 3*time.Minute), A: d.IntN(1 << 16), B: d.IntN(1 << 16), For: 30 * time.Minute}
	e.Kind = timeline.Pick(d, EventHang, EventHideMember, EventCutMember, EventReject, EventNodeDown, EventSever)
	if e.Kind == EventSever && !s.Deadly {
		e.Kind = EventHang
	}
	s.Events = append(s.Events, e, Event{At: e.At + e.For, Kind: EventResume}) // all faults end with the last event
}

// LastingDrain is how long a drain takes at least that must have moved the members.
const LastingDrain = 15 * time.Minute

// drainEvents drain the node of a member of a small cluster for long, now and then. They are drawn
// apart from the others, so that schedules without them stay what they were.
func drainEvents(s *Schedule) {
	d := timeline.NewDice(s.Seed, 23)
	if s.Size > 2 || !d.Chance(60) {
		return
	}
	e := Event{At: d.Between(20*time.Second, 6*time.Minute), Kind: EventDrain, A: d.IntN(1 << 16), For: LastingDrain + d.Between(0, 10*time.Minute)}
	s.Events = append(s.Events, e, Event{At: e.At + e.For + time.Second, Kind: EventResume}) // all faults end with the last event
}

// secretEvents delete several Secrets of a cluster with certificates at once, now and then. With an
// odd B the controllers have ended before, so that no memory holds them. The events are drawn apart
// from the others.
func secretEvents(s *Schedule) {
	d := timeline.NewDice(s.Seed, 31)
	if s.Certificates && d.Chance(40) {
		s.Events = append(s.Events, Event{At: d.Between(20*time.Second, 6*time.Minute), Kind: EventLoseSecrets, A: d.IntN(1 << 16), B: d.IntN(1 << 16)})
	}
}

// LongNodeFaults sometimes lets a node go for so long that its members are replaced, and ties
// volumes to nodes. In a cluster whose pods stay on their nodes, a majority may be cut off for
// that long. The events are drawn apart from the others.
func LongNodeFaults(s *Schedule) {
	d := timeline.NewDice(s.Seed, 16)
	s.Evicts, s.LocalVolumes = d.Chance(30), s.Volumes && !s.Deadly && d.Chance(50)
	if !d.Chance(30) {
		return
	}
	e := Event{At: d.Between(20*time.Second, 4*time.Minute), A: d.IntN(1 << 16), B: d.IntN(1 << 16), For: EvictAfter + d.Between(0, 6*time.Minute)}
	e.Kind = timeline.Pick(d, EventNodeDown, EventNodeLost, EventSever)
	if e.Kind == EventSever && s.Evicts && !s.Deadly {
		return
	}
	s.Events = append(s.Events, e, Event{At: e.At + e.For, Kind: EventResume}) // all faults end with the last event
	slices.SortStableFunc(s.Events, func(a, b Event) int { return int(a.At - b.At) })
}

// volumeEvents sometimes declare larger volumes, and keep or delete them with the cluster.
// They are drawn apart from the others, so that schedules without them stay what they were.
func volumeEvents(s *Schedule) {
	d := timeline.NewDice(s.Seed, 5)
	if !s.Volumes || !d.Chance(50) {
		return
	}
	s.Expandable = d.Chance(60)
	for range 1 + d.IntN(3) {
		s.Events = append(s.Events, Event{
			At: d.Between(0, 6*time.Minute), Kind: timeline.Pick(d, EventGrow, EventRetention), A: d.IntN(1 << 16), B: d.IntN(1 << 16),
		})
	}
}

// stays lets the author of the spec limit how long pods stay on lost nodes, now and then.
func stays(s *Schedule) {
	if d := timeline.NewDice(s.Seed, 25); d.Chance(25) {
		s.Stay = timeline.Pick(d, time.Second, 5*time.Second, 90*time.Second, EvictAfter, 10*time.Minute)
	}
}

// wipeEvents empty disks under members whose pods and PVCs stay, now and then. They are
// drawn apart from the others, so that schedules without them stay what they were.
func wipeEvents(s *Schedule) {
	d := timeline.NewDice(s.Seed, 6)
	if !d.Chance(10) {
		return
	}
	for range 1 + d.IntN(2) {
		s.Events = append(s.Events, WipeAt(d))
	}
}

// WipeAt draws one event that empties a disk.
func WipeAt(d *timeline.Dice) Event {
	return Event{At: d.Between(20*time.Second, 6*time.Minute), Kind: EventWipe, A: d.IntN(1 << 16)}
}

// damageEvents damage the disk of a joining member, now and then.
func damageEvents(s *Schedule) {
	d := timeline.NewDice(s.Seed, 8)
	if d.Chance(10) {
		s.Events = append(s.Events, Event{At: d.Between(2*time.Second, 4*time.Minute), Kind: EventDamage, A: d.IntN(1 << 16)})
	}
}
