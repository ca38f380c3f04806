// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// Held returns the URIs that a retention does not delete; see package planner/backup.
type Held func(*v1beta2.EtcdBackup, []*v1beta2.EtcdBackup, []*v1beta2.EtcdRestore, []*v1beta2.EtcdCluster, time.Time) []string

// place is where the backup with a name is stored.
const place = "s3://bucket/"

// prune deletes what the retention of the schedule lets go after a backup, the oldest first. A user holds the first one.
func (w *World) prune() {
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
	if !found || w.Plan.KeepsBackups == 0 {
		return
	}
	b := &v1beta2.EtcdBackup{Spec: v1beta2.BackupSpec{HeldSnapshots: []string{place + "backup-1"}}}
	for n := range w.stored {
		at := metav1.NewTime(w.Now().Add(time.Duration(n-w.stored) * time.Second))
		b.Status.History = append(b.Status.History, v1beta2.BackupRecord{Succeeded: true, URI: place + backupName(n+1), StartTime: at, CompletionTime: &at})
	}
	held := w.Holds(b, []*v1beta2.EtcdBackup{b}, nil, []*v1beta2.EtcdCluster{cluster}, w.Now())
	for n := 1; n <= w.stored-w.Plan.KeepsBackups; n++ {
		name := backupName(n)
		if w.Etcd.Backups[name] == nil || slices.Contains(held, place+name) {
			continue
		}
		if r := cluster.Status.Recovery; r.IsInProgress() && r.Source.Backup != nil && r.Source.Backup.SHA256 == name {
			w.Violated("S6", "the retention deletes %s, which recovery %s reads", name, r.ID)
		}
		if n == 1 {
			w.Violated("S6", "the retention deletes %s, which a user holds", name)
		}
		w.Stats.Fault("prune a backup")
		delete(w.Etcd.Backups, name)
	}
}

func backupName(n int) string { return fmt.Sprintf("backup-%d", n) }

// NewestBackup is the name of the backup that was stored last.
func (w *World) NewestBackup() string { return backupName(w.stored) }
