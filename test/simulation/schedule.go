// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Schedule is one simulated story: a cluster and what happens to it. It follows from
// its seed; shrinking takes events out of it.
type Schedule struct {
	Seed uint64
	// Size, Version, Volumes and RetainDeleted and RetainScaled are the spec.
	Size                                 int
	Version                              string
	Volumes, RetainDeleted, RetainScaled bool
	// Snapshots, if not 0, is after how many entries members make a snapshot.
	Snapshots int64
	// Expandable is true if the storage class lets volumes grow.
	Expandable bool
	// LearnersReady is true if the readiness of etcd does not tell a learner.
	LearnersReady bool
	// Deadly schedules may destroy a quorum for good.
	Deadly bool
	// Certificates is true if the cluster has spec.TLS.auto, and CertificatesLost if its
	// authority gets lost.
	Certificates, CertificatesLost bool
	// Automatic is true if the spec lets the cluster recover by itself.
	Automatic bool
	// Recovers is true if a person asks for a recovery once all faults are over.
	Recovers bool
	Events   []Event
}

// Event is something that happens at a moment. What its numbers mean depends on its
// kind; they are taken modulo what there is at that moment.
type Event struct {
	At   time.Duration
	Kind EventKind
	A, B int
	For  time.Duration
}

func (e Event) String() string {
	return fmt.Sprintf("%v %s(%d, %d, %v)", e.At, e.Kind, e.A, e.B, e.For)
}

// EventKind is a kind of event.
type EventKind int

// Values of EventKind.
const (
	EventCall EventKind = iota
	EventFreeze
	EventSecondController
	EventKillController
	EventKillContainer
	EventDeletePod
	EventForceDeletePod
	EventEvict
	EventPressure
	EventNodeDown
	EventNodeLost
	EventDrain
	EventSlowStart
	EventSlowCatchUp
	EventHideMember
	EventCutMember
	EventScale
	EventVersion
	EventPause
	EventResume
	EventRecreate
	EventDeleteService
	EventEditService
	EventDeleteBudget
	EventDeleteClaim
	EventHibernate
	EventRelabel
	EventRotateAuthority
	EventDeleteSecret
	EventDeclare
	EventRestart
	EventBadDeclaration
	// EventDisaster and EventRecover are never drawn with the others; see recoveryEvents.
	EventDisaster
	EventRecover
	// EventBackup, EventRestore and EventTotalLoss neither; see restoreEvents.
	EventBackup
	EventRestore
	EventTotalLoss
	// EventGrow and EventRetention are not either; see volumeEvents.
	EventGrow
	EventRetention
	// EventWipe and EventDamage are not either; see wipeEvents and damageEvents.
	EventWipe
	EventDamage
	// EventOldAPI is not either; see rollBackEvents.
	EventOldAPI
	// EventSever is not either; see severEvents.
	EventSever
	eventKinds
)

var eventNames = [eventKinds]string{
	"call", "freeze a cache", "second controller", "kill controller", "kill container", "delete pod", "force-delete pod",
	"evict", "node pressure", "node down", "node lost", "drain", "slow start", "slow catch-up", "hide member",
	"cut member", "scale", "change version", "pause", "resume", "delete and recreate", "delete service", "edit service",
	"delete budget", "delete claim", "hibernate and wake", "strip labels",
	"rotate the authority", "delete secret",
	"change the pods' declaration", "request a restart", "declare what does not run",
	"disaster", "ask for a recovery",
	"back up", "restore", "lose everything",
	"declare larger volumes", "keep or give up volumes", "wipe a disk", "damage a learner",
	"save the API and bring it back", "cut nodes off",
}

func (k EventKind) String() string { return eventNames[k] }

// weights say how often each kind of event is drawn.
var weights = [eventKinds]int{
	EventCall: 60, EventFreeze: 12, EventSecondController: 5, EventKillController: 6, EventKillContainer: 12,
	EventDeletePod: 10, EventForceDeletePod: 8, EventEvict: 5, EventPressure: 5, EventNodeDown: 6, EventNodeLost: 4,
	EventDrain: 3, EventSlowStart: 4, EventSlowCatchUp: 4, EventHideMember: 8, EventCutMember: 8, EventScale: 16,
	EventVersion: 10, EventPause: 3, EventResume: 3, EventRecreate: 4, EventDeleteService: 5, EventEditService: 5,
	EventDeleteBudget: 2, EventDeleteClaim: 3, EventHibernate: 4, EventRelabel: 2,
	EventDeclare: 14, EventRestart: 4, EventBadDeclaration: 5,
}

// versionLines are the versions between which clusters move, oldest first.
var versionLines = [][]string{
	{"3.5.26", "3.5.27", "3.6.8", "3.6.11", "3.7.0"},
	{"3.2.13", "3.3.27", "3.4.30", "3.5.21", "3.5.26", "3.6.8"},
}

// NewSchedule draws a schedule.
func NewSchedule(seed uint64) *Schedule {
	d := newDice(seed, 1)
	s := &Schedule{
		Seed:          seed,
		Size:          pick(d, 1, 3, 3, 3, 3, 5, 5, 2, 4),
		Volumes:       d.chance(50),
		LearnersReady: d.chance(50),
		Deadly:        d.chance(20),
		RetainDeleted: d.chance(25),
		RetainScaled:  d.chance(25),
	}
	line := versionLines[0]
	if d.chance(20) {
		line = versionLines[1]
	}
	s.Version = line[d.IntN(len(line)-1)]
	total := 0
	for _, w := range weights {
		total += w
	}
	length := d.between(30*time.Second, 6*time.Minute)
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
	severEvents(s)
	slices.SortStableFunc(s.Events, func(a, b Event) int { return int(a.At - b.At) })
	return s
}

func (s *Schedule) draw(d *dice, total int, length time.Duration) Event {
	e := Event{At: d.between(0, length), A: d.IntN(1 << 16), B: d.IntN(1 << 16), For: d.between(time.Second, 90*time.Second)}
	if d.chance(40) {
		e.At = d.between(0, 15*time.Second) // much happens while a cluster starts
	}
	if d.chance(30) && len(s.Events) > 0 {
		e.At = s.Events[len(s.Events)-1].At + d.between(0, 3*time.Second) // troubles come together
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

// without returns a copy of the schedule that leaves out events [from, to).
func (s *Schedule) without(from, to int) *Schedule {
	c := *s
	c.Events = append(slices.Clone(s.Events[:from]), s.Events[to:]...)
	return &c
}

// String writes the schedule for a reader.
func (s *Schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: size %d, version %s, volumes %t, retain %t/%t, learners ready %t, deadly %t, certificates %t, automatic %t, recovers %t, expandable %t",
		s.Seed, s.Size, s.Version, s.Volumes, s.RetainDeleted, s.RetainScaled, s.LearnersReady, s.Deadly, s.Certificates, s.Automatic, s.Recovers, s.Expandable)
	for _, e := range s.Events {
		fmt.Fprintf(&b, "\n  %v", e)
	}
	return b.String()
}

// line returns the versions that the cluster of the schedule may move along.
func (s *Schedule) line() []string {
	for _, line := range versionLines {
		if slices.Contains(line, s.Version) {
			return line
		}
	}
	return versionLines[0]
}
