// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"slices"
	"time"
)

// truthLimit is how long the status may say that the cluster serves while no write is
// acknowledged.
const truthLimit = 30 * time.Second

// minAcknowledged is how many acknowledged writes a cell needs: fewer prove nothing.
const minAcknowledged = 200

// observation is what was seen of writes and of the status in one cell.
type observation struct {
	// from and to are when the clients started and when they were stopped.
	from, to time.Time
	// acknowledged is when each write was acknowledged, in order.
	acknowledged []time.Time
	// serving is when the status said Running and Available, read live.
	serving []time.Time
	// gapLimit is the longest time that may pass without an acknowledgement, 0 if the fault or
	// the operation takes the quorum.
	gapLimit time.Duration
}

// longestGap returns the longest time without an acknowledgement, and when it began.
func (o *observation) longestGap() (gap time.Duration, begun time.Time) {
	last := o.from
	for _, at := range append(slices.Clone(o.acknowledged), o.to) {
		if at.After(o.to) {
			at = o.to
		}
		if between := at.Sub(last); between > gap {
			gap, begun = between, last
		}
		last = at
	}
	return gap, begun
}

// untruth returns when the status said that the cluster serves although no write had been
// acknowledged for longer than truthLimit, and how long none had.
func (o *observation) untruth() (at time.Time, without time.Duration, found bool) {
	for _, said := range o.serving {
		last := o.from
		// The writes before the index were acknowledged by then.
		i, _ := slices.BinarySearchFunc(o.acknowledged, said.Add(1), time.Time.Compare)
		if i > 0 {
			last = o.acknowledged[i-1]
		}
		if pause := said.Sub(last); pause > truthLimit && pause > without {
			at, without, found = said, pause, true
		}
	}
	return at, without, found
}

// problems returns what contradicts the promises, one sentence each.
func (o *observation) problems() []string {
	var list []string
	if n := len(o.acknowledged); n < minAcknowledged {
		list = append(list, fmt.Sprintf("only %d writes were acknowledged, which proves nothing", n))
	}
	gap, begun := o.longestGap()
	if o.gapLimit > 0 && gap > o.gapLimit {
		list = append(list, fmt.Sprintf("no write was acknowledged for %v from %v after the start on, although a quorum of members was up; at most %v is allowed",
			gap.Round(time.Millisecond), begun.Sub(o.from).Round(time.Millisecond), o.gapLimit))
	}
	if at, without, found := o.untruth(); found {
		list = append(list, fmt.Sprintf("the status said Running and Available %v after the start, when no write had been acknowledged for %v",
			at.Sub(o.from).Round(time.Millisecond), without.Round(time.Millisecond)))
	}
	return list
}

// tolerates is true if a cluster keeps its quorum while so many of its members are down.
func tolerates(size, down int) bool { return size-down >= size/2+1 }
