// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package listcache

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// smallestSpace is how many bytes of encodings are remembered at least: those of 10,000 objects of
// 3 KB in both formats.
const smallestSpace = 64 << 20

// space is the memory that encodings of all formats may take together.
type space struct {
	limit, used atomic.Int64
}

func newSpace(limit int64) *space {
	s := &space{}
	s.limit.Store(limit)
	return s
}

// take reserves n bytes, and is false if there is no space for them.
func (s *space) take(n int) bool {
	if s.used.Add(int64(n)) <= s.limit.Load() {
		return true
	}
	s.free(n)
	return false
}

func (s *space) free(n int) { s.used.Add(-int64(n)) }

// excess returns by how many bytes the encodings exceed the limit; 0 or less if they do not.
func (s *space) excess() int64 { return s.used.Load() - s.limit.Load() }

// adjust sets the limit by what the process may use and uses.
func (s *space) adjust() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if live[0].Value.Kind() != metrics.KindUint64 {
		return
	}
	others := min(live[0].Value.Uint64(), math.MaxInt64)
	s.limit.Store(limitOf(debug.SetMemoryLimit(-1), int64(others)-s.used.Load())) // #nosec G115 -- bounded in the line above
}

// limitOf returns how many bytes encodings may take, in a process with this GOMEMLIMIT and this
// live heap of everything else. The sum of both stays below three quarters of GOMEMLIMIT, so that
// garbage collections do not follow each other. Encodings get only half of what is free below
// that, because objects may be added.
func limitOf(memoryLimit, others int64) int64 {
	if memoryLimit == math.MaxInt64 {
		return smallestSpace
	}
	return max(smallestSpace, (memoryLimit/4*3-max(others, 0))/2)
}
