// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	writerPrefix = "writer/"
	// writeTimeout is after how long a write counts as failed. An election on a busy machine takes more than two seconds.
	writeTimeout = 4 * time.Second
	// writableWithin is how soon a cluster that serves takes a write.
	writableWithin = time.Minute
)

// Writer puts a new key at a fixed rate, as a busy user of the cluster does. It does not wait
// for the responses to earlier puts, and its one client spreads over the members that are
// ready. It counts what was acknowledged.
type Writer struct {
	// clients take turns.
	clients []*clientv3.Client
	// members, if set, are followed: the endpoints of the client are those that are
	// ready.
	members *Members
	stop    context.CancelFunc
	done    chan struct{}

	mu     sync.Mutex
	report Report
	lastOK time.Time
	// stopped is when the last write was sent: waiting for the responses to the last writes is
	// no gap, because nothing is written.
	stopped time.Time
}

// Report is what a writer has seen.
type Report struct {
	Sent int
	// Failed are puts that were not acknowledged; etcd may have them all the same.
	Failed int
	// Errors counts the failures by the text of the error.
	Errors map[string]int
	// LongestGap is the longest time without an acknowledgement.
	LongestGap time.Duration
	// Latencies of the acknowledged puts, sorted.
	Latencies []time.Duration
	// AcknowledgedAt is when each put was acknowledged, in no order.
	AcknowledgedAt []time.Time

	acknowledged map[string]bool
}

// Quantile returns the latency below which the share q of the puts stayed.
func (r *Report) Quantile(q float64) time.Duration {
	if len(r.Latencies) == 0 {
		return 0
	}
	return r.Latencies[min(len(r.Latencies)-1, int(q*float64(len(r.Latencies))))]
}

func (r *Report) String() string {
	return fmt.Sprintf("%d sent, %d failed %v, longest gap %v, p50 %v, p99 %v", r.Sent, r.Failed, r.Errors,
		r.LongestGap.Round(time.Millisecond), r.Quantile(0.5).Round(time.Microsecond), r.Quantile(0.99).Round(time.Microsecond))
}

// Write starts a writer that puts a key each interval. It returns after the first
// acknowledgement.
func (m *Members) Write(ctx context.Context, interval time.Duration) (*Writer, error) {
	endpoints := m.endpoints()
	if len(endpoints) == 0 {
		return nil, fmt.Errorf("no member is ready to be written to")
	}
	c, err := m.newClient(endpoints...)
	if err != nil {
		return nil, err
	}
	if err := untilWritten(ctx, c, writerPrefix+"first", ""); err != nil {
		return nil, errors.Join(fmt.Errorf("first write: %w", err), c.Close())
	}
	return start(ctx, interval, m, c), nil
}

// WriteThrough starts a writer of so many clients that take turns. Each has one
// connection to address, the host and port of a service, and stays on it until it is
// closed. It returns after each has had an acknowledgement.
func WriteThrough(ctx context.Context, interval time.Duration, address string, clients int) (*Writer, error) {
	var list []*clientv3.Client
	for range clients {
		c, err := newClient(dialDirectly(dialTimeout), nil, "http://"+address)
		if err != nil {
			return nil, errors.Join(err, closeAll(list))
		}
		list = append(list, c)
		if err := untilWritten(ctx, c, writerPrefix+"first", ""); err != nil {
			return nil, errors.Join(fmt.Errorf("first write through %s: %w", address, err), closeAll(list))
		}
	}
	return start(ctx, interval, nil, list...), nil
}

// untilWritten repeats a put until it succeeds, which a client of etcd does not: etcd may elect a leader, and the nodes
// learn with a delay where a service leads.
func untilWritten(ctx context.Context, c *clientv3.Client, key, value string) error {
	ctx, cancel := context.WithTimeout(ctx, writableWithin)
	defer cancel()
	var last error
	err := wait.PollUntilContextCancel(ctx, PollInterval, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		_, last = c.Put(ctx, key, value)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("put %s: %w; at last: %w", key, err, last)
	}
	return nil
}

func closeAll(clients []*clientv3.Client) error {
	var errs []error
	for _, c := range clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

func start(ctx context.Context, interval time.Duration, m *Members, clients ...*clientv3.Client) *Writer {
	ctx, stop := context.WithCancel(ctx)
	w := &Writer{
		clients: clients, members: m, stop: stop, done: make(chan struct{}), lastOK: time.Now(),
		report: Report{Errors: map[string]int{}, acknowledged: map[string]bool{}},
	}
	go func() {
		defer close(w.done)
		w.run(ctx, interval)
	}()
	return w
}

// endpoints are the addresses that the client Service would lead to.
func (m *Members) endpoints() []string {
	var list []string
	for _, p := range m.Pods.List() {
		if IsPodReady(p) && p.Status.PodIP != "" && p.Labels["etcd_role"] == "voter" {
			list = append(list, m.endpoint(p))
		}
	}
	slices.Sort(list)
	return list
}

func (w *Writer) run(ctx context.Context, interval time.Duration) {
	var group sync.WaitGroup
	defer group.Wait()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var known []string
	for i := 0; ; i++ {
		var changed <-chan struct{}
		if w.members != nil {
			changed = w.members.Pods.Changed()
			if now := w.members.endpoints(); len(now) > 0 && !slices.Equal(now, known) {
				known = now
				w.clients[0].SetEndpoints(now...)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-ticker.C:
			// Stopping must not cut off writes that are on their way.
			c := w.clients[i%len(w.clients)]
			group.Go(func() { w.put(context.WithoutCancel(ctx), c, fmt.Sprintf("%s%08d", writerPrefix, i)) })
		}
	}
}

func (w *Writer) put(ctx context.Context, client *clientv3.Client, key string) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	start := time.Now()
	_, err := client.Put(ctx, key, "")
	end := time.Now()

	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.Sent++
	if err != nil {
		w.report.Failed++
		w.report.Errors[err.Error()]++
		return
	}
	w.report.acknowledged[key] = true
	w.report.Latencies = append(w.report.Latencies, end.Sub(start))
	w.report.AcknowledgedAt = append(w.report.AcknowledgedAt, end)
	w.acknowledge(end)
}

// acknowledge notes when something was acknowledged, as long as there are writes.
func (w *Writer) acknowledge(at time.Time) {
	if !w.stopped.IsZero() && at.After(w.stopped) {
		at = w.stopped
	}
	w.report.LongestGap = max(w.report.LongestGap, at.Sub(w.lastOK))
	w.lastOK = at
}

// Stop ends the writer and returns what it has seen.
func (w *Writer) Stop() (*Report, error) {
	w.mu.Lock()
	w.stopped = time.Now()
	w.mu.Unlock()
	w.stop()
	<-w.done
	w.acknowledge(w.stopped)
	slices.Sort(w.report.Latencies)
	if err := closeAll(w.clients); err != nil {
		return nil, fmt.Errorf("close the writer: %w", err)
	}
	return &w.report, nil
}

// Kept returns an error unless each live member holds every write of the report
// that was acknowledged.
func (m *Members) Kept(ctx context.Context, r *Report) error {
	return m.onEach(ctx, writerPrefix, func(found map[string]string) error {
		var lost []string
		for key := range maps.Keys(r.acknowledged) {
			if _, ok := found[key]; !ok {
				lost = append(lost, key)
			}
		}
		if len(lost) > 0 {
			slices.Sort(lost)
			return fmt.Errorf("%d of %d acknowledged writes are lost: %s", len(lost), len(r.acknowledged),
				strings.Join(lost[:min(len(lost), 10)], " "))
		}
		return nil
	})
}
