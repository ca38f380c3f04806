// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package timeline is the ground that the simulation stands on: virtual time, the dice, and the
// record of one run (trace, figures, the first violation).
//
// Nothing ever sleeps: Advance jumps from event to event. Every choice comes from Dice, whose
// throws follow from the seed, so that a seed always gives the same run. A new choice
// is drawn from a stream of its own (NewDice), or every seed becomes another story.
//
// It may import nothing of the simulation. Start at timeline.go.
package timeline
