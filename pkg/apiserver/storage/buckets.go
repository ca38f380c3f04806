// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// storedPeriod is how long an amount that was read counts, with what was added to it. Other servers write, too.
	storedPeriod = time.Minute
	// fullPeriod is how long it counts if it leaves no room. A read may be expensive.
	fullPeriod = 5 * time.Second
	// manyAmounts is when those that no longer count are forgotten.
	manyAmounts = 1024
)

// storedAmounts knows about how much is stored below each prefix.
type storedAmounts struct {
	clock clock.PassiveClock
	read  func(ctx context.Context, prefix string) (amount, error)
	mu    sync.Mutex
	known map[string]storedAmount
}

type storedAmount struct {
	amount

	at time.Time
}

// excess says which limit leaves no room for a write.
type excess int

const (
	fits excess = iota
	tooManyBytes
	tooManyObjects
	// tooManyFinalizers of one object owe more than a namespace may write.
	tooManyFinalizers
)

func newStoredAmounts(clock clock.PassiveClock, read func(context.Context, string) (amount, error)) *storedAmounts {
	return &storedAmounts{clock: clock, read: read, known: map[string]storedAmount{}}
}

// grow adds to what is stored, if the limits have room for it; 0 is no limit.
func (s *storedAmounts) grow(ctx context.Context, prefix string, by, most amount) excess {
	if by.bytes <= 0 && by.objects <= 0 {
		return fits
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.known[prefix]
	age := s.clock.Since(known.at)
	if !ok || age >= storedPeriod || known.with(by, most) != fits && age >= fullPeriod {
		stored, err := s.read(ctx, prefix)
		if err != nil {
			klog.FromContext(ctx).Info("Cannot read how much a namespace stores; the write is not limited by that", "prefix", prefix, "reason", err)
			return fits
		}
		if len(s.known) >= manyAmounts {
			clear(s.known)
		}
		known = storedAmount{amount: stored, at: s.clock.Now()}
	}
	result := known.with(by, most)
	if result == fits {
		known.bytes += by.bytes
		known.objects += by.objects
	}
	s.known[prefix] = known
	return result
}

// shrink undoes grow.
func (s *storedAmounts) shrink(prefix string, by amount) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.known[prefix]; ok && (by.bytes > 0 || by.objects > 0) {
		known.bytes -= by.bytes
		known.objects -= by.objects
		s.known[prefix] = known
	}
}

// with says which limit leaves no room for more. An object that changes does not count as one more.
func (a amount) with(more, most amount) excess {
	switch {
	case most.objects > 0 && more.objects > 0 && a.objects+more.objects > most.objects:
		return tooManyObjects
	case most.bytes > 0 && more.bytes > 0 && a.bytes+more.bytes > most.bytes:
		return tooManyBytes
	default:
		return fits
	}
}
