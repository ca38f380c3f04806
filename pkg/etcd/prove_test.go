// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"errors"
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
)

// TestFirstWriteAfterInheritedAlarms: a snapshot brings the alarms of its cluster. Those of members that no longer exist reject
// the writes of a restored member for ever. Its own alarm is about its own data.
func TestFirstWriteAfterInheritedAlarms(t *testing.T) {
	t.Parallel()
	ctx := within(t, limit)
	c := etcdtest.New(t)
	m := c.Member("m0")
	const gone = 4711
	m.Raise(gone, pb.AlarmType_NOSPACE)
	m.Raise(gone, pb.AlarmType_CORRUPT)
	if err := c.Client().ProveWrite(ctx); !errors.Is(err, etcd.ErrCorrupt) {
		t.Fatalf("a write of an ordinary cluster, which keeps its alarms: %v", err)
	}
	if err := c.Client().ProveFirstWrite(ctx); err != nil {
		t.Fatalf("the first write after a restore: %v", err)
	}
	if alarms, err := c.Client().Alarms(ctx); err != nil || len(alarms) != 0 {
		t.Errorf("alarms %v, %v", alarms, err)
	}
	m.Raise(m.ID(), pb.AlarmType_CORRUPT)
	if err := c.Client().ProveFirstWrite(ctx); !errors.Is(err, etcd.ErrCorrupt) {
		t.Errorf("a write with data that the member itself calls corrupt: %v", err)
	}
	want := []etcd.Alarm{{MemberID: m.ID(), Type: etcd.AlarmCorrupt}}
	if alarms, err := c.Client().Alarms(ctx); err != nil || !slices.Equal(alarms, want) {
		t.Errorf("alarms %v, %v; want %v", alarms, err, want)
	}
}
