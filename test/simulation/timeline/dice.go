// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"math/rand/v2"
	"time"
)

// Dice is the only source of chance. The same seed gives the same throws.
type Dice struct{ *rand.Rand }

// NewDice throws what follows from a seed and the number of a stream.
func NewDice(seed uint64, stream uint64) *Dice {
	return &Dice{rand.New(rand.NewPCG(seed, stream))}
}

// Chance is true with probability percent/100.
func (d *Dice) Chance(percent int) bool { return d.IntN(100) < percent }

// Between returns a duration in [low, high), in whole milliseconds.
func (d *Dice) Between(low, high time.Duration) time.Duration {
	span := int64((high - low) / time.Millisecond)
	if span <= 0 {
		return low
	}
	return low + time.Duration(d.Int64N(span))*time.Millisecond
}

// Pick chooses one value.
func Pick[T any](d *Dice, from ...T) T { return from[d.IntN(len(from))] }

const letters = "bcdfghjklmnpqrstvwxz2456789"

// Suffix returns ten random characters for a member name.
func (d *Dice) Suffix() string {
	b := make([]byte, 10)
	for i := range b {
		b[i] = letters[d.IntN(len(letters))]
	}
	return string(b)
}
