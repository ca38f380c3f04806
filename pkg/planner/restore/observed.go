// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/transfer"
)

// Finalizer keeps an EtcdRestore until the cluster that it has asked was told of its
// deletion.
const Finalizer = "etcd.database.coreos.com/restore"

// AnnotationRestoreUID on an EtcdCluster is the UID of the EtcdRestore that made it.
const AnnotationRestoreUID = "etcd.database.coreos.com/restore-uid"

// Observed is everything that a decision about one EtcdRestore depends on.
type Observed struct {
	Now     time.Time
	Restore *v1beta2.EtcdRestore
	// Cluster that is named; nil if it does not exist.
	Cluster *v1beta2.EtcdCluster
	// Backup that is named; nil if it does not exist, or if none is named.
	Backup *v1beta2.EtcdBackup
	// Safety is the EtcdBackup called SafetyCopyName; nil if there is none.
	Safety *v1beta2.EtcdBackup
	// Others are the EtcdRestores of the same cluster, but this one.
	Others []*v1beta2.EtcdRestore
	// Jobs of the restore, in any order.
	Jobs []Job
	// Seed is what the init containers of the new first member have said; nil while they
	// have said nothing.
	Seed *Seed
}

// Wait is what is waited for.
type Wait = transfer.Wait

// Job is one Job that looks at the backup.
type Job struct {
	transfer.Job
	Attempt int32
	// Target is what the backup is checked against, as resources.RestoreTarget writes it.
	Target string
	// Outcome is nil while the Job is not finished.
	Outcome *Outcome
}

// Outcome is what came of a Job.
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

// Seed is what became of the data in the new first member.
type Seed struct {
	// Refused is why it cannot be restored there, however often that is tried.
	Refused *Wait
	// Failing is why the last try failed.
	Failing *Wait
	// Revision of the restored key space, with the bump; 0 until it is known.
	Revision int64
}

// ReasonNotStarted is a Job whose pod Kubernetes could not start.
const ReasonNotStarted = transfer.ReasonNotStarted

// ReasonRefused is a pod, or another object, that Kubernetes does not let be made: it goes
// on by itself once it does.
const ReasonRefused = transfer.ReasonRefused

// ended is true once nothing more is done for the restore.
func (o *Observed) ended() bool {
	phase := o.Restore.Status.Phase
	return phase == v1beta2.RestorePhaseSucceeded || phase == v1beta2.RestorePhaseFailed
}

// asked is true if the status says that the cluster was asked to go on from the backup.
func (o *Observed) asked() bool {
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

func (o *Observed) held() bool { return slices.Contains(o.Restore.Finalizers, Finalizer) }

// made is true of a cluster that this restore has made.
func (o *Observed) made() bool {
	return o.Cluster != nil && o.Cluster.Annotations[AnnotationRestoreUID] == o.id()
}

// served is true if the cluster has ever had data.
func (o *Observed) served() bool {
	phase := o.Cluster.Status.Phase
	return phase != v1beta2.ClusterPhaseNone && phase != v1beta2.ClusterPhaseCreating
}

// fills is true if the cluster is a new one, which nobody has ever been a client of.
func (o *Observed) fills() bool {
	return o.Cluster.Annotations[v1beta2.AnnotationRestore] != "" && !o.served()
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

// refused says what keeps the cluster from going on until somebody changes it; otherwise it
// goes on.
func (o *Observed) refused(otherwise *Wait) *Wait {
	if b := o.Cluster.Status.BlockedBy; b != nil && (b.Reason == ReasonRefused || b.Reason == v1beta2.ReasonOldMemberMayRun) {
		return &Wait{Reason: b.Reason, Message: b.Message}
	}
	return otherwise
}

// filling says how it goes with the new first member.
func (o *Observed) filling(r *v1beta2.RecoveryStatus) *Wait {
	if r.Message == "" {
		return &Wait{Reason: string(r.Phase), Message: "the backup is restored in the new first member"}
	}
	return &Wait{Reason: "SeedLost", Message: fmt.Sprintf("nothing was touched, and it is tried again: %s; give it what it lacks in spec.pod of the cluster, "+
		"or delete EtcdRestore %s, which leaves everything as it is", strings.TrimRight(r.Message, ". "), o.Restore.Name)}
}

func metaTime(t time.Time) *metav1.Time {
	m := metav1.NewTime(t.Truncate(time.Second))
	return &m
}
