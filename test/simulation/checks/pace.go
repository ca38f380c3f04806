// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import "time"

const (
	// calmTime is how long after the last disturbance a controller has done what it can.
	// Members that do not respond are replaced after five minutes, one after the other.
	calmTime = 12 * time.Minute
	// paceTime is how long writes and changes of the membership are counted.
	paceTime = 10 * time.Minute
	// mostWrites, in paceTime, are those of a PVC that exists and a pod that is rejected, every
	// five seconds.
	mostWrites = 260
	// mostChanges of the membership, in paceTime, replace three members: each is added,
	// promoted, and the old one removed.
	mostChanges = 9
)

// pace counts what the controllers do while a fault lasts and nothing else happens.
type pace struct {
	begun           time.Duration
	writes, changes int
}

// isCalm is true if nothing was disturbed for so long that a controller has no reason to go on.
// It begins a new count when the last one is over.
func (c *Checks) isCalm() bool {
	if c.w.Elapsed-c.w.DisturbedAt < calmTime {
		return false
	}
	if c.pace.begun < c.w.DisturbedAt+calmTime || c.w.Elapsed-c.pace.begun > paceTime {
		c.pace = pace{begun: c.w.Elapsed}
	}
	return true
}

// countWrite is called after each write of a controller.
func (c *Checks) countWrite() {
	if !c.isCalm() {
		return
	}
	if c.pace.writes++; c.pace.writes == mostWrites {
		c.w.Violated("L3", "%d writes in %v while nothing happened", c.pace.writes, c.w.Elapsed-c.pace.begun)
	}
}

// countChange is called after each change of the membership.
func (c *Checks) countChange() {
	if !c.isCalm() {
		return
	}
	if c.pace.changes++; c.pace.changes > mostChanges {
		c.w.Violated("L3", "%d changes of the membership in %v while nothing happened", c.pace.changes, c.w.Elapsed-c.pace.begun)
	}
}
