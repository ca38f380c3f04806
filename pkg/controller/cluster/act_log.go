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
	"k8s.io/apimachinery/pkg/types"

	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// padTimeout bounds one batch of entries; the next reconcile adds more.
const padTimeout = 3 * time.Second

// readableLog stands in the record instead of an index.
const readableLog = "readable"

// logRecordOf reads the record of the log from the peer service. One that cannot be read
// is as good as none.
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
func (r *Reconciler) recordLog(ctx context.Context, key types.NamespacedName, s *seen, a planner.RecordLog) error {
	live, err := r.Objects.GetService(ctx, s.Cluster.Namespace, s.Cluster.Name)
	if err != nil {
		return fmt.Errorf("read the record of the log: %w", err)
	}
	if !resources.Owns(s.Cluster, live) {
		return fmt.Errorf("service %s belongs to somebody else: %w", live.Name, ErrStale)
	}
	if logRecordOf(live) != s.PeerService.Log {
		return fmt.Errorf("the record of the log is another one now: %w", ErrStale)
	}
	live = live.DeepCopy()
	setLogRecord(live, a.Log)
	updated, err := r.Objects.UpdateService(ctx, live)
	if err != nil {
		return conflictIsStale(err)
	}
	r.Gate.Note(key, updated)
	if a.Log.Readable {
		r.normal(s, EventLogPrepared, "The log of etcd was led past what members before 3.%d have written, which the next version cannot read", a.Log.Minor)
	}
	return nil
}

// padLog leads the log on.
func (r *Reconciler) padLog(ctx context.Context, s *seen, a planner.PadLog) error {
	ctx, cancel := context.WithTimeout(ctx, padTimeout)
	defer cancel()
	return r.Etcd.Pad(ctx, s.voters, a.Entries)
}
