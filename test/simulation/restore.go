// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// CreateRestore implements cluster.Objects: the controller restores a backup by itself.
// That is right only if nothing is left to go on from.
func (p objectsPort) CreateRestore(ctx context.Context, restore *v1beta2.EtcdRestore) (*v1beta2.EtcdRestore, error) {
	return call(ctx, p.c, "create etcdrestores "+restore.Name, true, false, func() (*v1beta2.EtcdRestore, error) {
		w := p.c.w
		if !w.nothingIsLeft() && !w.disturbed(&p.c.look) {
			w.checks.violated("L2", "a backup is restored although something is left")
		}
		w.askRestore(restore.Name, restore.Spec.Backup.Name)
		return restore, nil
	})
}

// askRestore is the controller of EtcdRestores, which has found a backup good: it asks the
// cluster to go on from it, unless it has done so before.
func (w *World) askRestore(id, backup string) {
	cluster, found := lookup[clusterObject](w.store, kindCluster, clusterName)
	if !found || cluster.Status.Recovery.InProgress() || w.restores[id] || w.backups[backup] == nil {
		return
	}
	w.restores[id], w.asked[id] = true, backup
	w.recoveries++
	w.stats.fault("restore")
	w.ask(id, backup)
}

// ask has the cluster go on from a backup.
func (w *World) ask(id, backup string) {
	cluster, found := lookup[clusterObject](w.store, kindCluster, clusterName)
	if !found {
		return
	}
	bump := int64(1000)
	if !resources.BumpsRevision(cluster.Spec.Version) {
		bump = 0
	}
	edit(w.store, kindCluster, clusterName, func(c *v1beta2.EtcdCluster) {
		c.Status.Recovery = &v1beta2.RecoveryStatus{
			ID: id, Trigger: v1beta2.RecoveryTriggerRestore, Phase: v1beta2.RecoveryPhasePending,
			Source: v1beta2.RecoverySource{Restore: id, Backup: &v1beta2.BackupPlace{
				StorageType: v1beta2.BackupStorageTypeS3, SHA256: backup,
				RestoreSource: v1beta2.RestoreSource{S3: &v1beta2.S3RestoreSource{Path: "bucket/" + backup}},
			}},
			RevisionBump: bump, RequestedAt: metav1.NewTime(w.Now()),
		}
	})
}

// snapshot is what is stored of a cluster.
type snapshot struct {
	lineage *lineage
	log     []entry
	term    uint64
	version string
}

// backUp stores what a member that serves has applied, and says so in the status.
func (w *World) backUp(name string) {
	for _, p := range w.etcd.processes {
		if !p.serves || !w.checks.judge(p.dir.lineage).live {
			continue
		}
		w.backups[name] = &snapshot{lineage: p.dir.lineage, log: append([]entry(nil), p.dir.log[:p.applied]...), term: p.dir.term, version: p.version}
		edit(w.store, kindCluster, clusterName, func(c *v1beta2.EtcdCluster) {
			c.Status.LastBackup = &v1beta2.LastBackup{Name: name, Time: metav1.NewTime(w.Now()), Verified: true}
		})
		return
	}
}

// nothingIsLeft is true if the cluster has neither a pod nor a volume.
func (w *World) nothingIsLeft() bool {
	for _, k := range []kind{kindPod, kindClaim} {
		for _, object := range w.store.list(k) {
			if object.GetLabels()[resources.LabelCluster] == clusterName && !resources.IsPrepared(object.GetAnnotations()) {
				return false
			}
		}
	}
	return true
}

// destroyAll takes every pod and every volume.
func (w *World) destroyAll() {
	for _, k := range []kind{kindPod, kindClaim} {
		for _, object := range w.store.list(k) {
			w.store.remove(k, object.GetName())
		}
	}
}

// newest is the name of the backup that was made last.
func (w *World) newest() string { return fmt.Sprintf("backup-%d", len(w.backups)) }

// restoreEvents are drawn apart from the others, so that schedules without them stay what
// they were.
func restoreEvents(s *Schedule) {
	d := newDice(s.Seed, 4)
	if !s.Deadly || s.Certificates || !d.chance(60) {
		return
	}
	at := d.between(10*time.Second, 4*time.Minute)
	for range 1 + d.IntN(2) {
		s.Events = append(s.Events, Event{At: at, Kind: EventBackup})
		at += d.between(0, time.Minute)
	}
	for range d.IntN(3) {
		s.Events = append(s.Events, Event{At: at + d.between(0, 2*time.Minute), Kind: EventRestore})
	}
	if d.chance(60) {
		s.Automatic = true
		s.Events = append(s.Events, Event{At: at + d.between(0, 2*time.Minute), Kind: EventTotalLoss})
	}
}
