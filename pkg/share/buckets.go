// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// manyBuckets is when those that are full are forgotten: they are as new ones.
const manyBuckets = 1024

// Buckets holds the bytes that each namespace may still write. Without a size they are bottomless, as the nil ones are.
// They are safe for concurrent use.
type Buckets struct {
	size   int64
	refill time.Duration
	clock  clock.PassiveClock
	mu     sync.Mutex
	levels map[string]level
}

// level is how full a bucket was at a time, in bytes.
type level struct {
	bytes float64
	at    time.Time
}

// NewBuckets returns full buckets of a size in bytes. An empty one is full again after the time refill.
func NewBuckets(size int64, refill time.Duration, clock clock.PassiveClock) *Buckets {
	return &Buckets{size: size, refill: refill, clock: clock, levels: map[string]level{}}
}

// Take takes bytes out of the bucket of a namespace. If there are fewer, it takes none and returns when there are enough.
func (b *Buckets) Take(namespace string, bytes int64) time.Duration {
	if b == nil || bytes == 0 || b.size == 0 {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.levels) >= manyBuckets {
		for other := range b.levels {
			if b.level(other) == float64(b.size) {
				delete(b.levels, other)
			}
		}
	}
	have := b.level(namespace)
	// What is larger than a bucket needs a full one.
	need := float64(min(bytes, b.size))
	if have < need {
		return time.Duration((need - have) / float64(b.size) * float64(b.refill))
	}
	b.levels[namespace] = level{bytes: have - need, at: b.clock.Now()}
	return 0
}

// GiveBack puts back what Take has taken and nothing has written.
func (b *Buckets) GiveBack(namespace string, bytes int64) {
	if b == nil || bytes == 0 || b.size == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.levels[namespace] = level{bytes: min(b.level(namespace)+float64(bytes), float64(b.size)), at: b.clock.Now()}
}

func (b *Buckets) level(namespace string) float64 {
	known, ok := b.levels[namespace]
	if !ok {
		return float64(b.size)
	}
	refilled := float64(b.clock.Since(known.at)) / float64(b.refill) * float64(b.size)
	return min(known.bytes+max(refilled, 0), float64(b.size))
}
