// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// RequestRecovery asks for a recovery, as a user does: the API takes it only while the
// status says that the quorum is lost and no recovery is under way.
func (w *World) RequestRecovery() {
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
	if !found || !kubernetes.ConditionIs(cluster, v1beta2.ClusterConditionQuorumLost, corev1.ConditionTrue) || cluster.Status.Recovery.IsInProgress() {
		return
	}
	var members []string
	survivors := 0
	for i := range cluster.Status.MemberStatuses {
		m := &cluster.Status.MemberStatuses[i]
		members = append(members, m.Name)
		if m.RaftIndex > 0 {
			survivors++
		}
	}
	chosen, readable := "", volumes(cluster)
	if survivors == 0 {
		if len(readable) == 0 {
			return
		}
		if len(readable) > 1 {
			chosen = readable[w.Recoveries%len(readable)]
		}
	}
	w.Stats.Fault("recover")
	w.Recoveries++
	id := fmt.Sprintf("request-%d", w.Recoveries)
	kubernetes.Edit(w.Store, kubernetes.KindCluster, schedules.ClusterName, func(c *v1beta2.EtcdCluster) {
		c.Status.Recovery = &v1beta2.RecoveryStatus{
			ID: id, Trigger: v1beta2.RecoveryTriggerRequest, Phase: v1beta2.RecoveryPhasePending,
			OldMembers: members, RequestedAt: metav1.NewTime(w.Now()), Member: chosen,
		}
	})
}

// volumes returns the voters whose PVC a recovery can read, by the status.
func volumes(cluster kubernetes.EtcdCluster) []string {
	if cluster.Status.PermanentQuorumLossSince == nil {
		return nil
	}
	var names []string
	for i := range cluster.Status.MemberStatuses {
		m := &cluster.Status.MemberStatuses[i]
		if m.Claim != "" && m.Role != v1beta2.MemberRoleLearner && m.Role != v1beta2.MemberRolePending {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return names
}

// HasReadableVolume is true if a recovery can read a PVC, by the status.
func (w *World) HasReadableVolume() bool {
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
	return found && len(volumes(cluster)) > 0
}

// AskRestore is the controller of EtcdRestores, which has found a backup good: it asks the
// cluster to go on from it, unless it has done so before.
func (w *World) AskRestore(id, backup string) {
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
	if !found || cluster.Status.Recovery.IsInProgress() || w.Restores[id] || w.Etcd.Backups[backup] == nil {
		return
	}
	w.Restores[id], w.Asked[id] = true, backup
	w.Uncopied[id] = isServed(cluster) && !slices.ContainsFunc(cluster.Status.MemberStatuses, func(m v1beta2.MemberStatus) bool { return diagnosis.HasResponded(&m) })
	w.Recoveries++
	w.Stats.Fault("restore")
	w.Ask(id, backup)
}

// isServed is true for a cluster that has data, by its status.
func isServed(cluster kubernetes.EtcdCluster) bool {
	return cluster.Status.Phase != v1beta2.ClusterPhaseNone && cluster.Status.Phase != v1beta2.ClusterPhaseCreating
}

// Ask has the cluster go on from a backup.
func (w *World) Ask(id, backup string) {
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
	if !found {
		return
	}
	bump := int64(1000)
	if !resources.BumpsRevision(cluster.Spec.Version) {
		bump = 0
	}
	kubernetes.Edit(w.Store, kubernetes.KindCluster, schedules.ClusterName, func(c *v1beta2.EtcdCluster) {
		c.Status.Recovery = &v1beta2.RecoveryStatus{
			ID: id, Trigger: v1beta2.RecoveryTriggerRestore, Phase: v1beta2.RecoveryPhasePending,
			Source: v1beta2.RecoverySource{Restore: id, Backup: &v1beta2.BackupPlace{
				StorageType: v1beta2.BackupStorageTypeS3, SHA256: backup,
				RestoreSource: v1beta2.RestoreSource{S3: &v1beta2.S3RestoreSource{Path: "bucket/" + backup}},
			}},
			RevisionBump: bump, OnlyIfUnresponsive: w.Uncopied[id], RequestedAt: metav1.NewTime(w.Now()),
		}
	})
}

// BackUp stores what a serving member has applied, and writes that into the status. The retention follows.
func (w *World) BackUp() {
	name := backupName(w.stored + 1)
	for _, p := range w.Etcd.Processes {
		if !p.Serves || !w.Standing(p.Dir.Lineage).Live {
			continue
		}
		w.Etcd.Backups[name] = &simetcd.Snapshot{Lineage: p.Dir.Lineage, Log: append([]simetcd.Entry(nil), p.Dir.Log[:p.Applied]...), Term: p.Dir.Term, Version: p.Version}
		kubernetes.Edit(w.Store, kubernetes.KindCluster, schedules.ClusterName, func(c *v1beta2.EtcdCluster) {
			c.Status.LastBackup = &v1beta2.LastBackup{Name: name, Time: metav1.NewTime(w.Now()), Verified: true}
		})
		w.stored++
		w.prune()
		return
	}
}
