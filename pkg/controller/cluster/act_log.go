// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// padTimeout bounds one batch of entries; the next reconcile adds more.
const padTimeout = 3 * time.Second

// readableLog stands in the record instead of an index.
const readableLog = "readable"

// logRecordOf reads the record of the log from the headless Service. A record that cannot
// be read counts as none.
func logRecordOf(peer *corev1.Service) planner.LogRecord {
	words := strings.Fields(peer.Annotations[resources.AnnotationLog])
	if len(words) != 3 {
		return planner.LogRecord{}
	}
	minor, err := strconv.ParseUint(strings.TrimPrefix(words[1], "3."), 10, 16)
	if err != nil {
		return planner.LogRecord{}
	}
	r := planner.LogRecord{ClusterID: words[0], Minor: uint(minor), Readable: words[2] == readableLog}
	if r.Readable {
		return r
	}
	if r.Index, err = strconv.ParseUint(words[2], 10, 64); err != nil {
		return planner.LogRecord{}
	}
	return r
}

func setLogRecord(peer *corev1.Service, r planner.LogRecord) {
	index := strconv.FormatUint(r.Index, 10)
	if r.Readable {
		index = readableLog
	}
	metav1.SetMetaDataAnnotation(&peer.ObjectMeta, resources.AnnotationLog, fmt.Sprintf("%s 3.%d %s", r.ClusterID, r.Minor, index))
}

// recordLog notes from where the log must go on before a member may run the next version,
// and when it has.
func recordLog(ctx context.Context, r *run, a planner.RecordLog) error {
	live, err := r.Objects.GetService(ctx, r.seen.Cluster.Namespace, r.seen.Cluster.Name)
	if err != nil {
		return fmt.Errorf("read the record of the raft log: %w", err)
	}
	if !resources.Owns(r.seen.Cluster, live) {
		return fmt.Errorf("Service %s has another owner: %w", live.Name, reconcile.ErrStale)
	}
	if logRecordOf(live) != r.seen.PeerService.Log {
		return fmt.Errorf("the record of the raft log has changed since it was observed: %w", reconcile.ErrStale)
	}
	live = live.DeepCopy()
	setLogRecord(live, a.Log)
	updated, err := r.Objects.UpdateService(ctx, live)
	if err != nil {
		return reconcile.StaleOnConflict(err)
	}
	r.Gate.Note(r.key, updated)
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
