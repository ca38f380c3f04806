// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"time"
)

// dice is the only source of chance. The same seed gives the same throws.
type dice struct{ *rand.Rand }

func newDice(seed uint64, stream uint64) *dice {
	return &dice{rand.New(rand.NewPCG(seed, stream))}
}

// chance is true with probability percent/100.
func (d *dice) chance(percent int) bool { return d.IntN(100) < percent }

// between returns a duration in [low, high), in whole milliseconds.
func (d *dice) between(low, high time.Duration) time.Duration {
	span := int64((high - low) / time.Millisecond)
	if span <= 0 {
		return low
	}
	return low + time.Duration(d.Int64N(span))*time.Millisecond
}

func pick[T any](d *dice, from ...T) T { return from[d.IntN(len(from))] }

const letters = "bcdfghjklmnpqrstvwxz2456789"

// suffix returns ten random characters for a member name.
func (d *dice) suffix() string {
	b := make([]byte, 10)
	for i := range b {
		b[i] = letters[d.IntN(len(letters))]
	}
	return string(b)
}
