// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
)

// Finalizer keeps a deleted EtcdRestore until the recovery that it requested from the
// cluster is cancelled or over.
const Finalizer = "etcd.database.coreos.com/restore"

// Observed is everything that a decision about one EtcdRestore depends on.
type Observed struct {
	Now     time.Time
	Restore *v1beta2.EtcdRestore
	// Cluster that is named; nil if it does not exist.
	Cluster *v1beta2.EtcdCluster
	// Backup that is named; nil if it does not exist, or if none is named.
	Backup *v1beta2.EtcdBackup
	// PreRestore is the EtcdBackup called PreRestoreBackupName; nil if there is none.
	PreRestore *v1beta2.EtcdBackup
	// Others are all other EtcdRestores of the same cluster.
	Others []*v1beta2.EtcdRestore
	// Pruners are the Jobs of EtcdBackups in the namespace that run and may delete backups.
	Pruners []job.Pruner
	// Jobs of the restore, in any order.
	Jobs []Job
	// RecoveryMember is what the init containers of the new bootstrap member have reported; nil while
	// they have reported nothing.
	RecoveryMember *RecoveryMember
}

// Wait is what is waited for.
type Wait = job.Wait

// Job is one Job that looks at the backup.
type Job struct {
	job.Job
	Attempt int32
	// Target is what the backup is checked against, as resources.RestoreTarget writes it.
	Target string
	// Outcome is nil while the Job is not finished.
	Outcome *Outcome
}

// Outcome is the result of a Job.
type Outcome struct {
	Succeeded bool
	// Reason in one CamelCase word why it failed, and whether another attempt may go
	// better.
	Reason    string
	Retryable bool
	// Message for a reader. It holds no secret.
	Message    string
	Completion time.Time

	// What was found.
	Key         string
	SHA256      string
	Revision    int64
	Size        int64
	EtcdVersion string
	Encrypted   bool
	Verified    bool
}

// RecoveryMember is the state of the data in the new bootstrap member.
type RecoveryMember struct {
	// Rejected is why the backup cannot be restored there, however often that is tried.
	Rejected *Wait
	// Failing is why the last try failed.
	Failing *Wait
	// Revision of the restored key space, with the bump; 0 until it is known.
	Revision int64
	// Fills is true if its pod fills it. The next pod of one with a PVC only starts on what the PVC has.
	Fills bool
	// FailsToFill is true if its agent has found nothing on its volume, and cannot read or use the backup.
	FailsToFill bool
}

// hasEnded is true once nothing more is done for the restore.
func (o *Observed) hasEnded() bool {
	phase := o.Restore.Status.Phase
	return phase == v1beta2.RestorePhaseSucceeded || phase == v1beta2.RestorePhaseFailed
}

// isRequested is true if the status records that the cluster got the request for a recovery.
func (o *Observed) isRequested() bool {
	phase := o.Restore.Status.Phase
	return phase == v1beta2.RestorePhaseRestoring || phase == v1beta2.RestorePhaseStarting
}

// recovery returns the recovery of the cluster that this restore has asked for, or nil.
func (o *Observed) recovery() *v1beta2.RecoveryStatus {
	if o.Cluster == nil {
		return nil
	}
	r := o.Cluster.Status.Recovery
	if r == nil || r.ID != o.id() {
		return nil
	}
	return r
}

// id of the recovery that this restore asks for.
func (o *Observed) id() string { return string(o.Restore.UID) }

func (o *Observed) isHeld() bool { return slices.Contains(o.Restore.Finalizers, Finalizer) }

// isMade is true of a cluster that this restore has made.
func (o *Observed) isMade() bool {
	return o.Cluster != nil && o.Cluster.Annotations[v1beta2.AnnotationRestoreUID] == o.id()
}

// isServed is true if the cluster has ever had data.
func (o *Observed) isServed() bool {
	phase := o.Cluster.Status.Phase
	return phase != v1beta2.ClusterPhaseNone && phase != v1beta2.ClusterPhaseCreating
}

// fills is true if the cluster is new and no client has ever used it.
func (o *Observed) fills() bool {
	return o.Cluster.Annotations[v1beta2.AnnotationRestore] != "" && !o.isServed()
}

// newest returns the newest Job, nil if there is none.
func (o *Observed) newest() *Job {
	var newest *Job
	for i := range o.Jobs {
		if j := &o.Jobs[i]; newest == nil || j.Attempt > newest.Attempt {
			newest = j
		}
	}
	return newest
}

// blockedOr returns what keeps the cluster from going on until a user changes it, else the
// given wait.
func (o *Observed) blockedOr(otherwise *Wait) *Wait {
	if o.Cluster.Spec.Paused {
		return o.paused()
	}
	if b := o.Cluster.Status.BlockedBy; b != nil && (b.Reason == ReasonRejected || b.Reason == v1beta2.ReasonOldMemberMayRun) {
		return &Wait{Reason: b.Reason, Message: b.Message}
	}
	return otherwise
}

// paused waits for the end of a pause, in which the controller changes nothing.
func (o *Observed) paused() *Wait {
	return &Wait{Reason: ReasonClusterPaused, Message: fmt.Sprintf("EtcdCluster %s is paused: set spec.paused to false", o.Cluster.Name)}
}

// filling reports the progress of the new bootstrap member.
func (o *Observed) filling(r *v1beta2.RecoveryStatus) *Wait {
	if r.Message == "" {
		return &Wait{Reason: string(r.Phase), Message: "the backup is restored in the recovery member"}
	}
	return &Wait{Reason: ReasonRecoveryMemberLost, Message: fmt.Sprintf("nothing was changed, and the controller tries again: %s; set what the pod lacks in spec.pod of the cluster, "+
		"or delete EtcdRestore %s, which leaves everything as it is", strings.TrimRight(r.Message, ". "), o.Restore.Name)}
}
