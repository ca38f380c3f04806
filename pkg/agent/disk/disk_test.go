// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/agent/disk"
)

// slowDisk takes a time for each sync: number, counted from 1, says how long.
func slowDisk(t *testing.T, writes int, limit time.Duration, takes func(number int) time.Duration) (*disk.Test, *[]agent.DiskTest) {
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	number, shown := 0, &[]agent.DiskTest{}
	return &disk.Test{
		Dir: t.TempDir(), Writes: writes, Limit: limit, Clock: clock,
		Sync: func(*os.File) error {
			number++
			clock.SetTime(clock.Now().Add(takes(number)))
			return nil
		},
		Show: func(p *agent.DiskTest) error { *shown = append(*shown, *p); return nil },
	}, shown
}

func isEmpty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v: %v is left", err, left)
	}
}

func TestPercentiles(t *testing.T) {
	for name, c := range map[string]struct {
		writes int
		limit  time.Duration
		takes  func(int) time.Duration
		want   agent.DiskTest
		shown  int
	}{
		"one write": {
			1, time.Minute, func(int) time.Duration { return 3 * time.Millisecond },
			agent.DiskTest{Writes: 1, Wanted: 1, TookMicroseconds: 3000, P50Microseconds: 3000, P99Microseconds: 3000, MaxMicroseconds: 3000}, 0,
		},
		"a hundred writes": {
			100, time.Minute, func(n int) time.Duration { return time.Duration(101-n) * time.Millisecond },
			agent.DiskTest{Writes: 100, Wanted: 100, TookMicroseconds: 5050_000, P50Microseconds: 50_000, P99Microseconds: 99_000, MaxMicroseconds: 100_000}, 4,
		},
		"two slow of a hundred are in p99": {
			100, time.Minute, func(n int) time.Duration { return time.Duration(1+n/99*49) * time.Millisecond },
			agent.DiskTest{Writes: 100, Wanted: 100, TookMicroseconds: 198_000, P50Microseconds: 1000, P99Microseconds: 50_000, MaxMicroseconds: 50_000}, 0,
		},
		"the time limit": {
			100, 10 * time.Second, func(int) time.Duration { return 4 * time.Second },
			agent.DiskTest{Writes: 3, Wanted: 100, TookMicroseconds: 12_000_000, P50Microseconds: 4_000_000, P99Microseconds: 4_000_000, MaxMicroseconds: 4_000_000}, 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			test, shown := slowDisk(t, c.writes, c.limit, c.takes)
			got, err := test.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c.want.WriteBytes, c.want.Done = 2300, true
			if diff := cmp.Diff(&c.want, got); diff != "" {
				t.Error(diff)
			}
			if len(*shown) != c.shown {
				t.Errorf("the progress was shown %d times, want %d", len(*shown), c.shown)
			}
			for _, p := range *shown {
				if p.Done || p.Writes == 0 {
					t.Errorf("unexpected progress %+v", p)
				}
			}
			isEmpty(t, test.Dir)
		})
	}
}

// TestFailures: each leaves no file.
func TestFailures(t *testing.T) {
	full := errors.New("no space")
	for name, c := range map[string]struct {
		change func(*disk.Test, context.CancelFunc)
		want   error
	}{
		"no directory":             {func(d *disk.Test, _ context.CancelFunc) { d.Dir = filepath.Join(d.Dir, "none") }, fs.ErrNotExist},
		"no writes":                {func(d *disk.Test, _ context.CancelFunc) { d.Writes = 0 }, agent.ErrInvalid},
		"too many writes":          {func(d *disk.Test, _ context.CancelFunc) { d.Writes = agent.MaxDiskTestWrites + 1 }, agent.ErrInvalid},
		"no time":                  {func(d *disk.Test, _ context.CancelFunc) { d.Limit = 0 }, agent.ErrInvalid},
		"a sync that fails":        {func(d *disk.Test, _ context.CancelFunc) { d.Sync = func(*os.File) error { return full } }, full},
		"an interruption":          {func(d *disk.Test, cancel context.CancelFunc) { d.Sync = func(*os.File) error { cancel(); return nil } }, context.Canceled},
		"an output that is closed": {func(d *disk.Test, _ context.CancelFunc) { d.Show = func(*agent.DiskTest) error { return full } }, full},
	} {
		t.Run(name, func(t *testing.T) {
			test, _ := slowDisk(t, 10, time.Minute, func(int) time.Duration { return time.Second })
			dir := test.Dir
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c.change(test, cancel)
			if _, err := test.Run(ctx); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			isEmpty(t, dir)
		})
	}
}

// TestRealDisk writes to the disk of this machine.
func TestRealDisk(t *testing.T) {
	size := int64(0)
	test := &disk.Test{
		Dir: t.TempDir(), Writes: 20, Limit: time.Minute, Clock: clock.RealClock{}, Show: func(*agent.DiskTest) error { return nil },
		Sync: func(file *os.File) error {
			info, err := file.Stat()
			if err != nil {
				return err
			}
			size = max(size, info.Size())
			return disk.Sync(file)
		},
	}
	got, err := test.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.Writes != 20 || got.P50Microseconds > got.P99Microseconds || got.P99Microseconds > got.MaxMicroseconds || got.MaxMicroseconds == 0 || size != 20*2300 {
		t.Errorf("unexpected %+v, a file of %d bytes", got, size)
	}
	isEmpty(t, test.Dir)
}
