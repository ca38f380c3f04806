// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
)

// every is how often the progress is reported.
const every = time.Second

// Test writes to a file as etcd writes to its log.
type Test struct {
	// Dir is the directory of the file, which the test removes.
	Dir string
	// Writes are how many are made, from 1 to agent.MaxDiskTestWrites.
	Writes int
	// Limit is how long the test may take. It ends after the write that exceeds the limit.
	Limit time.Duration
	Clock clock.PassiveClock
	// Sync makes the data of a file durable.
	Sync func(*os.File) error
	// Show is called with the progress, once a second.
	Show func(*agent.DiskTest) error
}

// Run makes the writes. The error wraps agent.ErrInvalid for a wrong number of writes, or the
// error of the context or of the file system.
func (t *Test) Run(ctx context.Context) (result *agent.DiskTest, err error) {
	if t.Writes < 1 || t.Writes > agent.MaxDiskTestWrites || t.Limit <= 0 {
		return nil, fmt.Errorf("%w disk test: %d writes in at most %v; make 1 to %d in a time above 0", agent.ErrInvalid, t.Writes, t.Limit, agent.MaxDiskTestWrites)
	}
	file, err := os.CreateTemp(t.Dir, "disktest-*")
	if err != nil {
		return nil, fmt.Errorf("create the file of the test: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	// etcd allocates the segments of its log before it writes to them. Otherwise each write
	// would also change the size of the file, which fdatasync would have to write.
	if err := allocate(file, int64(t.Writes)*agent.DiskTestWriteBytes); err != nil {
		return nil, fmt.Errorf("allocate %d bytes: %w", t.Writes*agent.DiskTestWriteBytes, err)
	}
	if err := file.Sync(); err != nil {
		return nil, fmt.Errorf("sync the file of the test: %w", err)
	}
	return t.measure(ctx, file)
}

func (t *Test) measure(ctx context.Context, file *os.File) (*agent.DiskTest, error) {
	result := &agent.DiskTest{Wanted: t.Writes, WriteBytes: agent.DiskTestWriteBytes}
	data := make([]byte, agent.DiskTestWriteBytes)
	if _, err := rand.Read(data); err != nil {
		return nil, fmt.Errorf("make data that no disk compresses: %w", err)
	}
	durations := make([]time.Duration, 0, t.Writes)
	start := t.Clock.Now()
	shown := start
	for len(durations) < t.Writes && t.Clock.Since(start) < t.Limit {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if _, err := file.Write(data); err != nil {
			return nil, fmt.Errorf("write: %w", err)
		}
		before := t.Clock.Now()
		if err := t.Sync(file); err != nil {
			return nil, fmt.Errorf("fdatasync: %w", err)
		}
		now := t.Clock.Now()
		durations = append(durations, now.Sub(before))
		result.Writes, result.TookMicroseconds = len(durations), now.Sub(start).Microseconds()
		if now.Sub(shown) >= every {
			shown = now
			if err := t.Show(result); err != nil {
				return nil, fmt.Errorf("report the progress: %w", err)
			}
		}
	}
	slices.Sort(durations)
	result.P50Microseconds, result.P99Microseconds = percentile(durations, 50).Microseconds(), percentile(durations, 99).Microseconds()
	result.MaxMicroseconds = durations[len(durations)-1].Microseconds()
	result.Done = true
	return result, nil
}

// percentile returns the least duration that is not less than p of a hundred. Sorted must not
// be empty.
func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[(len(sorted)*p+99)/100-1]
}
