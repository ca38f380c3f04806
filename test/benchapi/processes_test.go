// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestClockOfProcessCountsItsCPUTime(t *testing.T) {
	t.Parallel()
	var before, after unix.Timespec
	clock := cpuClock(os.Getpid())
	if err := unix.ClockGettime(clock, &before); err != nil {
		t.Fatal(err)
	}
	const least = 20 * time.Millisecond
	own := ownSeconds()
	for ownSeconds()-own < least.Seconds() {
		continue
	}
	if err := unix.ClockGettime(clock, &after); err != nil {
		t.Fatal(err)
	}
	if used := time.Duration(after.Nano() - before.Nano()); used < least {
		t.Errorf("the clock counted %s while the process used %s", used, least)
	}
}

func TestNumberAfterLabel(t *testing.T) {
	t.Parallel()
	const profile = "heap profile: 1: 2\n# Alloc = 5\n# HeapAlloc = 1234567\n# HeapSys = 9\n"
	if found, err := numberAfter([]byte(profile), "# HeapAlloc ="); err != nil || found != 1234567 {
		t.Errorf("found %v, %v", found, err)
	}
	if _, err := numberAfter([]byte(profile), "VmRSS:"); err == nil {
		t.Error("a missing label is not an error")
	}
}
