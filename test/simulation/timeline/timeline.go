// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"container/heap"
	"time"
)

// epoch is when every simulation begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Timeline is virtual time and what will happen at which moment. Nothing ever
// sleeps: time jumps to the next event.
type Timeline struct {
	Elapsed time.Duration
	events  eventHeap
	seq     uint64
	// Steps counts the events that were run.
	Steps int

	// Dice is the source of chance of everything that happens.
	Dice  *Dice
	Stats *Stats
	// Violation is the first violation; what follows from it is not looked at.
	Violation *Violation
	// Late is true while a call is carried out after its controller has stopped waiting for
	// it. What that call breaks is no violation.
	Late bool
	// Disturbances counts what happened that a controller could not know of.
	Disturbances int
	DisturbedAt  time.Duration
	// Quiet is true once no more faults come.
	Quiet bool

	Log []string
	// tracing is true if the log is kept.
	tracing bool
}

// New begins at the epoch. The stream of the dice follows from the seed.
func New(seed uint64, stats *Stats, tracing bool) *Timeline {
	return &Timeline{Dice: NewDice(seed, 2), Stats: stats, tracing: tracing}
}

type event struct {
	at   time.Duration
	seq  uint64
	what func()
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }

func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || (h[i].at == h[j].at && h[i].seq < h[j].seq)
}

func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *eventHeap) Push(x any) { *h = append(*h, x.(event)) }

func (h *eventHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// After runs what in d from now.
func (t *Timeline) After(d time.Duration, what func()) {
	t.seq++
	heap.Push(&t.events, event{at: t.Elapsed + d, seq: t.seq, what: what})
}

// Advance lets d pass. It may be called from within an event: then others happen meanwhile,
// as they do while a caller waits for a response.
func (t *Timeline) Advance(d time.Duration) {
	end := t.Elapsed + d
	for len(t.events) > 0 && t.events[0].at <= end {
		e := heap.Pop(&t.events).(event)
		t.Elapsed = max(t.Elapsed, e.at)
		t.Steps++
		e.what()
	}
	t.Elapsed = max(t.Elapsed, end)
}

// Now implements clock.PassiveClock.
func (t *Timeline) Now() time.Time { return epoch.Add(t.Elapsed) }

// Since implements clock.PassiveClock.
func (t *Timeline) Since(then time.Time) time.Duration { return t.Now().Sub(then) }
