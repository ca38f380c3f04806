// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// NameTraffic counts up in a name of etcd, and asks a NameServer for that name all the time.
type NameTraffic struct {
	members *Members
	name    string
	stop    context.CancelFunc
	group   sync.WaitGroup
	// sent and acknowledged are the highest numbers that were sent and acknowledged.
	sent, acknowledged atomic.Int64

	mu     sync.Mutex
	report NameReport
	lastOK time.Time
}

// NameReport is what a NameTraffic has seen.
type NameReport struct {
	Asked, Written int
	// Failures are the queries without a response.
	Failures []error
	// Wrong are responds from before a write that had been acknowledged when the query was sent,
	// and responses that were never written.
	Wrong []string
	// LongestGap is the longest time without a response.
	LongestGap time.Duration
}

func (r *NameReport) String() string {
	return fmt.Sprintf("%d queries, %d failed, %d wrong responses, longest gap %v, %d writes", r.Asked, len(r.Failures), len(r.Wrong),
		r.LongestGap.Round(time.Millisecond), r.Written)
}

// Traffic starts a NameTraffic: each interval one write to a member, and one query. It returns
// after the first write was acknowledged.
func (s *NameServer) Traffic(ctx context.Context, members *Members, name string, interval time.Duration) (*NameTraffic, error) {
	ctx, stop := context.WithCancel(ctx)
	t := &NameTraffic{members: members, name: name, stop: stop, lastOK: time.Now()}
	if err := members.Put(ctx, t.key(), value(0)); err != nil {
		stop()
		return nil, err
	}
	t.group.Go(func() { t.write(ctx, interval) })
	t.group.Go(func() {
		for every(ctx, interval) {
			t.ask(ctx, s)
		}
	})
	return t, nil
}

// every waits for an interval; it returns false when ctx has ended.
func every(ctx context.Context, interval time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(interval):
		return true
	}
}

func (t *NameTraffic) key() string { return nameServerPrefix + t.name }

// value returns what CoreDNS reads from etcd.
func value(n int64) string { return fmt.Sprintf(`{"text":"%d"}`, n) }

// write counts up. A number is written only over the one before: a write that timed out and
// that etcd applies later changes nothing.
func (t *NameTraffic) write(ctx context.Context, interval time.Duration) {
	for every(ctx, interval) {
		for _, pod := range t.members.Live() {
			client, err := t.members.Client(pod)
			if err != nil {
				continue
			}
			if t.count(ctx, client) == nil {
				break
			}
		}
	}
}

// count writes the next number through one member.
func (t *NameTraffic) count(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	now, err := client.Get(ctx, t.key())
	if err != nil {
		return err
	}
	if len(now.Kvs) == 0 {
		return fmt.Errorf("key %s was deleted", t.key())
	}
	next := t.sent.Add(1)
	r, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(t.key()), "=", now.Kvs[0].ModRevision)).
		Then(clientv3.OpPut(t.key(), value(next))).Commit()
	if err == nil && r.Succeeded {
		t.acknowledged.Store(next)
		t.mu.Lock()
		t.report.Written++
		t.mu.Unlock()
	}
	return err
}

// ask sends one query. Its response must not be older than what was acknowledged before.
func (t *NameTraffic) ask(ctx context.Context, server *NameServer) {
	floor := t.acknowledged.Load()
	text, err := server.Text(ctx, t.name)
	if err != nil && ctx.Err() != nil {
		return // the test has ended this query
	}
	number, numberErr := strconv.ParseInt(text, 10, 64)
	now := time.Now()

	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Asked++
	switch {
	case err != nil:
		t.report.Failures = append(t.report.Failures, err)
		return
	case numberErr != nil || number < floor || number > t.sent.Load():
		t.report.Wrong = append(t.report.Wrong, fmt.Sprintf("%q after %d was acknowledged and before %d was sent", text, floor, t.sent.Load()+1))
	}
	t.report.LongestGap = max(t.report.LongestGap, now.Sub(t.lastOK))
	t.lastOK = now
}

// Stop ends the traffic and returns what it has seen, or an error if it has seen nothing.
func (t *NameTraffic) Stop() (*NameReport, error) {
	t.stop()
	t.group.Wait()
	t.report.LongestGap = max(t.report.LongestGap, time.Since(t.lastOK))
	if t.report.Asked == 0 || t.report.Written == 0 {
		return nil, errors.New("there was no traffic: " + t.report.String())
	}
	return &t.report, nil
}
