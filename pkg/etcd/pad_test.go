// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
)

// TestPad leads the log on: by as many entries as were requested, without a change that
// clients could see, also when the database is full.
func TestPad(t *testing.T) {
	t.Parallel()
	c := etcdtest.New(t)
	m := c.Member("m0")
	m.Put(3)
	revision := revisionOf(t, m)
	client := c.Client()
	before, err := client.Status(within(t, limit), m.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Pad(within(t, limit), 500); err != nil {
		t.Fatal(err)
	}
	m.RaiseNoSpace()
	if err := client.Pad(within(t, limit), 500); err != nil {
		t.Errorf("with a full database: %v", err)
	}
	after, err := client.Status(within(t, limit), m.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	if more := after.RaftApplied - before.RaftApplied; more < 1000 || more > 1010 {
		t.Errorf("the log went on by %d entries, not 1000", more)
	}
	if now := revisionOf(t, m); now != revision {
		t.Errorf("the revision went from %d to %d", revision, now)
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if err := client.Pad(over, 10); err == nil {
		t.Error("nothing could be appended, and that was no error")
	}
}

func revisionOf(t *testing.T, m *etcdtest.Member) int64 {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{m.ClientURL}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	r, err := client.Get(within(t, limit), "any")
	if err != nil {
		t.Fatal(err)
	}
	return r.Header.Revision
}
