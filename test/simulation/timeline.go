// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"container/heap"
	"time"
)

// epoch is when every simulation begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// timeline is virtual time and what will happen at which moment. Nothing ever
// sleeps: time jumps to the next event.
type timeline struct {
	now    time.Duration
	events eventHeap
	seq    uint64
	// steps counts the events that were run.
	steps int
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
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// after runs what in d from now.
func (t *timeline) after(d time.Duration, what func()) {
	t.seq++
	heap.Push(&t.events, event{at: t.now + d, seq: t.seq, what: what})
}

// advance lets d pass. It may be called from within an event: then others happen
// meanwhile, as they do while somebody waits for an answer.
func (t *timeline) advance(d time.Duration) {
	end := t.now + d
	for len(t.events) > 0 && t.events[0].at <= end {
		e := heap.Pop(&t.events).(event)
		t.now = max(t.now, e.at)
		t.steps++
		e.what()
	}
	t.now = max(t.now, end)
}

// Now implements clock.PassiveClock.
func (t *timeline) Now() time.Time { return epoch.Add(t.now) }

// Since implements clock.PassiveClock.
func (t *timeline) Since(then time.Time) time.Duration { return t.Now().Sub(then) }
