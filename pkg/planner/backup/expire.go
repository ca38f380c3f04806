// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// expire deletes a single EtcdBackup after its TTL, unless it is needed. It comes after all rules that make a backup.
func expire(o *Observed, _ time.Time) (Plan, bool) {
	at := o.expiry()
	switch {
	case at.IsZero():
		return Plan{}, false
	case at.After(o.Now):
		return Plan{RequeueAfter: at.Sub(o.Now)}, true
	case o.Needed != nil:
		return Plan{Kept: o.Needed, RequeueAfter: idlePeriod}, true
	}
	return Plan{Action: ActionExpire}, true
}

// expiry returns when the TTL is over; the zero time while the backup has not ended, or if the TTL does not count. The
// condition tells when the backup ended by the clock of Kubernetes. Status.completionTime is by the clock of a node.
func (o *Observed) expiry() time.Time {
	b := o.Backup
	progressing := meta.FindStatusCondition(b.Status.Conditions, ConditionProgressing)
	ended := b.Status.Phase == v1beta2.BackupPhaseSucceeded || b.Status.Phase == v1beta2.BackupPhaseFailed
	if b.Spec.TTL == nil || o.isPeriodic() || !ended || progressing == nil || progressing.Status != metav1.ConditionFalse {
		return time.Time{}
	}
	return progressing.LastTransitionTime.Add(b.Spec.TTL.Duration)
}

// Needed returns why an EtcdBackup stays although its TTL is over; nil if nothing needs it. Restores and backups are
// those of its namespace. Cluster is the one that it is of, and may be nil.
func Needed(b *v1beta2.EtcdBackup, restores []*v1beta2.EtcdRestore, backups []*v1beta2.EtcdBackup, cluster *v1beta2.EtcdCluster, now time.Time) *Kept {
	if b.IsHeld() {
		return &Kept{Reason: ReasonHeld, Message: fmt.Sprintf("spec.hold is true; to have this EtcdBackup deleted, set spec.hold=false: kubectl etcd backup release %s -n %s", b.Name, b.Namespace)}
	}
	for _, r := range restores {
		if isOpen(r) && namesBackup(r, b) {
			return &Kept{Reason: ReasonNeededByRestore, Message: fmt.Sprintf("EtcdRestore %s needs it and has not ended; to end that restore, delete the EtcdRestore", r.Name)}
		}
	}
	if b.Status.LastSuccessDate.IsZero() {
		return nil // it has stored nothing
	}
	last := &Kept{Reason: ReasonLastProven, Message: "it is the last verified backup of the cluster; it is deleted after a newer one is stored. To delete it now, delete this EtcdBackup"}
	if cluster != nil && cluster.Status.LastBackup != nil && cluster.Status.LastBackup.Name == b.Name {
		return last
	}
	for _, other := range backups {
		if supersedes(other, b, cluster, now) {
			return nil
		}
	}
	return last
}

// namesBackup is true if a restore reads an EtcdBackup, or may continue only with it: its pre-restore backup.
func namesBackup(r *v1beta2.EtcdRestore, b *v1beta2.EtcdBackup) bool {
	made := r.Status.PreRestoreBackup
	return r.Spec.Backup != nil && r.Spec.Backup.Name == b.Name || b.Annotations[resources.AnnotationPreRestoreBackup] == r.Name ||
		made != nil && made.Backup == b.Name
}

// supersedes is true if another EtcdBackup stays that has stored a backup of what b is of, and a restore takes that.
func supersedes(other, b *v1beta2.EtcdBackup, cluster *v1beta2.EtcdCluster, now time.Time) bool {
	return other.DeletionTimestamp == nil && resources.BackupOf(other, resources.SourceOf(b)) && resources.Supersedes(other, b, cluster, now)
}
