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
	// manyBuckets is when those that are full are forgotten: they are as new ones.
	manyBuckets = 1024
	// storedPeriod is how long a size that was read counts, with what was added to it. Other servers write, too.
	storedPeriod = time.Minute
	// fullPeriod is how long it counts if it leaves no room. A read may be expensive.
	fullPeriod = 5 * time.Second
)

// buckets holds the bytes that each namespace may still write.
type buckets struct {
	size   int64
	clock  clock.PassiveClock
	mu     sync.Mutex
	levels map[string]level
}

// level is how full a bucket was at a time, in bytes.
type level struct {
	bytes float64
	at    time.Time
}

func newBuckets(size int64, clock clock.PassiveClock) *buckets {
	return &buckets{size: size, clock: clock, levels: map[string]level{}}
}

// take takes bytes out of the bucket of a namespace. If there are fewer, it takes none and returns when there are enough.
func (b *buckets) take(namespace string, bytes int64) time.Duration {
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
		return time.Duration((need - have) / float64(b.size) * float64(refillTime))
	}
	b.levels[namespace] = level{bytes: have - need, at: b.clock.Now()}
	return 0
}

// giveBack puts back what take has taken and nothing has written.
func (b *buckets) giveBack(namespace string, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.levels[namespace] = level{bytes: min(b.level(namespace)+float64(bytes), float64(b.size)), at: b.clock.Now()}
}

func (b *buckets) level(namespace string) float64 {
	known, ok := b.levels[namespace]
	if !ok {
		return float64(b.size)
	}
	refilled := float64(b.clock.Since(known.at)) / float64(refillTime) * float64(b.size)
	return min(known.bytes+max(refilled, 0), float64(b.size))
}

// storedSizes knows about how much is stored below each prefix.
type storedSizes struct {
	clock clock.PassiveClock
	read  func(ctx context.Context, prefix string) (int64, error)
	mu    sync.Mutex
	known map[string]storedSize
}

type storedSize struct {
	bytes int64
	at    time.Time
}

func newStoredSizes(clock clock.PassiveClock, read func(context.Context, string) (int64, error)) *storedSizes {
	return &storedSizes{clock: clock, read: read, known: map[string]storedSize{}}
}

// grow adds bytes to what is stored, if the limit has room for them.
func (s *storedSizes) grow(ctx context.Context, prefix string, bytes, limit int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.known[prefix]
	age := s.clock.Since(known.at)
	if !ok || age >= storedPeriod || known.bytes+bytes > limit && age >= fullPeriod {
		size, err := s.read(ctx, prefix)
		if err != nil {
			klog.FromContext(ctx).Info("Cannot read how much a namespace stores; the write is not limited by that", "prefix", prefix, "reason", err)
			return true
		}
		if len(s.known) >= manyBuckets {
			clear(s.known)
		}
		known = storedSize{bytes: size, at: s.clock.Now()}
	}
	fits := known.bytes+bytes <= limit
	if fits {
		known.bytes += bytes
	}
	s.known[prefix] = known
	return fits
}
