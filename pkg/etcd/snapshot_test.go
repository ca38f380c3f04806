// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"crypto/sha256"
	"io"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
)

// TestSnapshotRevision: with a quorum the revision of a snapshot is confirmed, but a
// survivor is never made to ask for one. Without a quorum both give what the member has.
func TestSnapshotRevision(t *testing.T) {
	cluster := etcdtest.NewVoters(t, 2)
	leader := cluster.Leader()
	leader.Put(5)
	other := cluster.Member("m0")
	if other == leader {
		other = cluster.Member("m1")
	}
	check := func(quorum bool) {
		t.Helper()
		client := cluster.ClientOf(leader)
		for name, open := range map[string]func(context.Context, etcd.Endpoint, time.Duration) (*etcd.Snapshot, error){
			"snapshot": client.Snapshot, "of a survivor": client.SurvivorSnapshot,
		} {
			s, err := open(t.Context(), leader.Endpoint(), time.Minute)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			raw, err := io.ReadAll(s)
			if err != nil || s.Close() != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if s.Revision != 6 || s.Confirmed != (quorum && name == "snapshot") {
				t.Errorf("%s: revision %d, confirmed %t", name, s.Revision, s.Confirmed)
			}
			data, sum := raw[:len(raw)-etcd.SnapshotTrailer], raw[len(raw)-etcd.SnapshotTrailer:]
			if sha256.Sum256(data) != [sha256.Size]byte(sum) || int64(len(raw)) != s.Size() {
				t.Errorf("%s: %d bytes without the hash that they should have", name, len(raw))
			}
		}
	}
	check(true)
	other.Kill()
	check(false)
}

// Only etcd can stall: the reader of a snapshot begins, pauses and goes on when it likes.
func TestSnapshotWaitsForItsReader(t *testing.T) {
	member := etcdtest.NewVoters(t, 1).Leader()
	writer, err := clientv3.New(clientv3.Config{Endpoints: []string{member.ClientURL}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = writer.Close() })
	for _, key := range []string{"a", "b", "c", "d"} { // more than is on its way at a time
		if _, err := writer.Put(t.Context(), key, strings.Repeat("x", 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	now := testingclock.NewFakeClock(time.Now())
	pool := etcd.NewPool(etcd.PoolConfig{Clock: now})
	t.Cleanup(pool.Close)
	client := pool.Client(etcd.Target{Endpoints: []etcd.Endpoint{member.Endpoint()}})
	s, err := client.Snapshot(t.Context(), member.Endpoint(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	now.Step(time.Hour)
	if _, err := io.CopyN(io.Discard, s, 1000); err != nil {
		t.Fatalf("its reader began late: %v", err)
	}
	now.Step(time.Hour)
	if _, err := io.Copy(io.Discard, s); err != nil {
		t.Errorf("its reader paused: %v", err)
	}
}
