// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// padTimeout bounds one batch of entries; the next reconcile adds more.
const padTimeout = 3 * time.Second

// recordLog notes from where the log must go on before a member may run the next version,
// and when it has.
func recordLog(ctx context.Context, r *run, a planner.RecordLog) error {
	live, record, err := readRecord(ctx, r)
	if err != nil {
		return err
	}
	if record.Log != r.seen.Record.Log {
		return fmt.Errorf("the record of the raft log has changed since it was observed: %w", reconcile.ErrStale)
	}
	record.Log = a.Log
	if err := updateRecord(ctx, r, live, record); err != nil {
		return err
	}
	if a.Log.Readable {
		normal(r, EventLogPrepared, "Forced a raft snapshot: the log of etcd no longer holds entries that members before 3.%d have written and the next version cannot read", a.Log.Minor)
	}
	return nil
}

// forceSnapshot adds entries to the raft log, so that the members take a snapshot.
func forceSnapshot(ctx context.Context, r *run, a planner.ForceSnapshot) error {
	ctx, cancel := context.WithTimeout(ctx, padTimeout)
	defer cancel()
	return r.Etcd.Pad(ctx, r.seen.voters, a.Entries)
}
