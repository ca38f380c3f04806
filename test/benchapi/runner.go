// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// result is what one measurement found.
type result struct {
	// Requests is what the CPU time is divided by, and Seconds how long they took together.
	Requests int     `json:"requests"`
	Seconds  float64 `json:"seconds"`
	// CPU is the CPU time of each process in seconds, without what the process uses at rest in the
	// same time. Rest is what was subtracted, and Client the CPU time of the benchmark.
	CPU    map[string]float64 `json:"cpuSeconds"`
	Rest   map[string]float64 `json:"restCPUSeconds"`
	Client float64            `json:"clientCPUSeconds"`
	// P50, P99 and Max are latencies in milliseconds.
	P50 float64 `json:"p50Milliseconds"`
	P99 float64 `json:"p99Milliseconds"`
	Max float64 `json:"maxMilliseconds"`
	// Bytes is the size of all responses.
	Bytes int64 `json:"responseBytes"`
}

// window measures CPU time from its start to its end.
type window struct {
	environment *environment
	begun       time.Time
	cpu         map[string]float64
	client      float64
}

// settle is how long the servers may finish what an earlier measurement caused.
const settle = 50 * time.Millisecond

func (e *environment) openWindow(ctx context.Context) (*window, error) {
	if err := pause(ctx, settle); err != nil {
		return nil, err
	}
	cpu, err := e.cpuSeconds()
	return &window{environment: e, begun: time.Now(), cpu: cpu, client: ownSeconds()}, err
}

// close returns the result without the number of requests.
func (w *window) close(latencies []time.Duration) (result, error) {
	r := result{Seconds: time.Since(w.begun).Seconds(), CPU: map[string]float64{}, Rest: map[string]float64{}, Client: ownSeconds() - w.client}
	cpu, err := w.environment.cpuSeconds()
	if err != nil {
		return r, err
	}
	for name, used := range cpu {
		r.Rest[name] = w.environment.rest[name] * r.Seconds
		r.CPU[name] = used - w.cpu[name] - r.Rest[name]
	}
	r.P50, r.P99, r.Max = milliseconds(quantile(latencies, 0.5)), milliseconds(quantile(latencies, 0.99)), milliseconds(quantile(latencies, 1))
	return r, nil
}

// ownSeconds returns the CPU time of this process.
func ownSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// box bounds a measurement by requests and by time, whichever ends first. It makes the least
// number of requests even after the time.
type box struct {
	requests, least int
	limit           time.Duration
}

// repeat makes requests with a number of clients at the same time. Each request has another
// number, in a random order, so that names are distinct.
func (e *environment) repeat(ctx context.Context, clients int, b box, request func(ctx context.Context, i int) (int64, error)) (result, error) {
	order := rand.Perm(b.requests) // #nosec G404 -- the order of requests is no secret
	var next, received atomic.Int64
	var mutex sync.Mutex
	var latencies []time.Duration
	w, err := e.openWindow(ctx)
	if err != nil {
		return result{}, err
	}
	group, ctx := errgroup.WithContext(ctx)
	for range clients {
		group.Go(func() error {
			var own []time.Duration
			for {
				i := int(next.Add(1)) - 1
				if i >= len(order) || i >= b.least && time.Since(w.begun) > b.limit {
					break
				}
				begun := time.Now()
				size, err := request(ctx, order[i])
				if err != nil {
					return fmt.Errorf("request %d: %w", i, err)
				}
				own = append(own, time.Since(begun))
				received.Add(size)
			}
			mutex.Lock()
			defer mutex.Unlock()
			latencies = append(latencies, own...)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return result{}, err
	}
	r, err := w.close(latencies)
	r.Requests, r.Bytes = len(latencies), received.Load()
	return r, err
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
