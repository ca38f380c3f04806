// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"slices"
	"time"
)

const (
	// calm is how long the servers may finish what loading caused before their rest is measured.
	calm = 2 * time.Second
	// restParts is the number of parts in which the rest is measured, each of restPart.
	restParts, restPart = 5, time.Second
)

// restOf is what a process uses without requests.
type restOf struct {
	Size    string `json:"size"`
	Objects int    `json:"objects"`
	Process string `json:"process"`
	// CPU is milliseconds of CPU time in a second, and its range over the parts of the measurement.
	CPU spread `json:"cpuMillisecondsPerSecond"`
}

// measureRest measures what each process uses without requests: polls, leases, progress of
// watches, garbage collection. A request that takes long in wall time would otherwise pay for
// more of this than a fast one. The rest is subtracted from every measurement, at both sides.
func (st *stage) measureRest(ctx context.Context) error {
	if err := pause(ctx, calm); err != nil {
		return err
	}
	// The rest is zero until it is known.
	st.rest = nil
	parts := map[string][]float64{}
	for range restParts {
		w, err := st.openWindow(ctx)
		if err != nil {
			return err
		}
		if err := pause(ctx, restPart); err != nil {
			return err
		}
		r, err := w.close(nil)
		if err != nil {
			return err
		}
		for name, used := range r.CPU {
			parts[name] = append(parts[name], used/r.Seconds)
		}
	}
	st.rest = map[string]float64{}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		st.rest[name] = median(parts[name])
		st.report.addRest(st, name, parts[name])
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
