// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// AnnotationOfCluster marks the EtcdBackup that is kept for spec.backup of the cluster
// that it names. Without it an EtcdBackup is its user's and left alone.
const AnnotationOfCluster = "etcd.database.coreos.com/backup-of"

// ScheduledName is the name of the EtcdBackup that is kept for spec.backup of a cluster.
func ScheduledName(cluster string) string { return cluster + "-scheduled" }

// Reasons of the condition BackupHealthy of an EtcdCluster. NameConflict is a reason of other
// conditions, too.
const (
	// ReasonBackupFailed: the newest attempt of a periodic backup that has ended failed. Look at the EtcdBackup that the message names, and remove the cause. Ends with the next backup that is stored.
	ReasonBackupFailed = "BackupFailed"
	// ReasonBackupOverdue: two scheduled times have passed without a stored backup. Look at the EtcdBackup that the message names: its condition Progressing says what it waits for. Ends with the next backup that is stored.
	ReasonBackupOverdue = "BackupOverdue"
	// ReasonBackupDataDiffers: etcd reported that the data of its members differed (alarm CORRUPT) when the last backup was made, so it may have the wrong data. No older backup was deleted. Replace the member that differs as docs/how-to/corrupt-member.md says, and disarm the alarm. Ends with the next periodic backup after that.
	ReasonBackupDataDiffers = "BackupDataDiffers"
	// ReasonBackupUnconfirmed: the last backup is of a member that no quorum confirmed, such as one that was cut off from the others, so it may lack the newest writes. Bring back a quorum. Ends with the next backup that a quorum confirms.
	ReasonBackupUnconfirmed = "BackupUnconfirmed"
	// ReasonBackupsCurrent: every periodic backup was stored when it was due. The good state.
	ReasonBackupsCurrent = "BackupsCurrent"
	// ReasonNoBackupYet: a periodic backup has not been stored yet, and is not overdue. Ends with the first backup. No action is needed.
	ReasonNoBackupYet = "NoBackupYet"
	// ReasonNameConflict: an object of a name that the backups of this cluster need exists and was not created for them. Delete that object, or create it under another name.
	ReasonNameConflict = "NameConflict"
)

// overdueGrace is how late a backup may be after the second scheduled time that passed without one.
const overdueGrace = 10 * time.Minute

// ClusterObserved is everything that a decision about the backups of one cluster
// depends on.
type ClusterObserved struct {
	Now     time.Time
	Cluster *v1beta2.EtcdCluster
	// Backups of the cluster and the one that it was restored from, in any order.
	Backups []*v1beta2.EtcdBackup
	// Scheduled is the EtcdBackup called ScheduledName, nil if there is none.
	Scheduled *v1beta2.EtcdBackup
}

// ClusterPlan is what is done about the backups of a cluster.
type ClusterPlan struct {
	// Create and Update are the EtcdBackup for spec.backup; at most one is set.
	Create, Update *v1beta2.EtcdBackup
	// LastBackup and Healthy belong in the status of the cluster. Healthy is nil if
	// the cluster has no periodic backups.
	LastBackup *v1beta2.LastBackup
	Healthy    *v1beta2.ClusterCondition
	// Behind are the periodic backups that are due because the data of the cluster went on in new members. The controller
	// wakes them: no object that their own loop watches has changed.
	Behind []*v1beta2.EtcdBackup
	// RequeueAfter is when a backup becomes overdue; 0: none can.
	RequeueAfter time.Duration
}

// DecideCluster says what is done about the backups of a cluster.
func DecideCluster(o ClusterObserved) ClusterPlan {
	plan := ClusterPlan{LastBackup: resources.LastBackup(o.Cluster, o.Backups, o.Now)}
	conflict := o.Scheduled != nil && o.Scheduled.Annotations[AnnotationOfCluster] != o.Cluster.Name
	if !conflict && o.Cluster.DeletionTimestamp == nil {
		plan.Create, plan.Update = o.scheduled()
	}
	plan.Healthy, plan.RequeueAfter = o.healthy(plan.LastBackup, conflict && hasSchedule(o.Cluster))
	recovered := RecoveredAt(o.Cluster)
	for _, b := range o.Backups {
		of := b.Spec.EtcdCluster
		if of != nil && of.Name == o.Cluster.Name && b.Spec.IsPeriodic() && !b.Spec.BackupPolicy.Suspend && isBehind(b, recovered, o.Now) {
			plan.Behind = append(plan.Behind, b)
		}
	}
	return plan
}

func hasSchedule(c *v1beta2.EtcdCluster) bool {
	return c.Spec.Backup != nil && c.Spec.Backup.Schedule != ""
}

// scheduled returns the EtcdBackup to create or to update. Without a schedule in spec.backup an
// existing EtcdBackup is suspended and not deleted: its status tells where the backups are.
func (o *ClusterObserved) scheduled() (create, update *v1beta2.EtcdBackup) {
	switch live := o.Scheduled; {
	case !hasSchedule(o.Cluster) && (live == nil || live.Spec.BackupPolicy == nil || live.Spec.BackupPolicy.Suspend):
		return nil, nil
	case !hasSchedule(o.Cluster):
		update = live.DeepCopy()
		update.Spec.BackupPolicy.Suspend = true
		return nil, update
	case live == nil:
		create = &v1beta2.EtcdBackup{
			ObjectMeta: metav1.ObjectMeta{
				Name: ScheduledName(o.Cluster.Name), Namespace: o.Cluster.Namespace,
				Annotations: map[string]string{AnnotationOfCluster: o.Cluster.Name},
			},
			Spec: SpecOfCluster(o.Cluster),
		}
		if _, rebuilt := o.Cluster.Annotations[v1beta2.AnnotationRebuilt]; rebuilt {
			create.Spec.Hold = ptr.To(true)
		}
		return create, nil
	case live.DeletionTimestamp != nil:
		return nil, nil
	}
	want := SpecOfCluster(o.Cluster)
	v1beta2.SetDefaults_BackupSpec(&want)
	want.Hold, want.HeldSnapshots = o.Scheduled.Spec.Hold, o.Scheduled.Spec.HeldSnapshots // a user sets them there
	if equality.Semantic.DeepEqual(want, o.Scheduled.Spec) {
		return nil, nil
	}
	update = o.Scheduled.DeepCopy()
	update.Spec = want
	return nil, update
}

// SpecOfCluster returns the spec of a backup as spec.backup of a cluster asks for it.
// The cluster must have one. Without a schedule there, the backup is made once.
func SpecOfCluster(c *v1beta2.EtcdCluster) v1beta2.BackupSpec {
	policy := c.Spec.Backup.DeepCopy()
	spec := v1beta2.BackupSpec{
		EtcdCluster:        &v1beta2.EtcdClusterRef{Name: c.Name},
		StorageType:        policy.StorageType,
		BackupSource:       policy.BackupSource,
		Compression:        policy.Compression,
		Encryption:         policy.Encryption,
		Verify:             policy.Verify,
		ServiceAccountName: policy.ServiceAccountName,
		Job:                policy.Job,
	}
	if policy.Schedule == "" {
		spec.TTL = policy.TTL
		return spec
	}
	spec.BackupPolicy = &v1beta2.BackupPolicy{Schedule: policy.Schedule, TimeZone: policy.TimeZone}
	if r := policy.Retention; r != nil {
		spec.BackupPolicy.MaxAge = r.Age
		if r.Count != nil {
			spec.BackupPolicy.MaxBackups = *r.Count
		}
	}
	return spec
}

// verdict is what one periodic backup contributes to the condition of its cluster.
type verdict struct {
	status          corev1.ConditionStatus
	reason, message string
	// overdue is when it will be.
	overdue time.Time
}

func (o *ClusterObserved) healthy(last *v1beta2.LastBackup, conflict bool) (*v1beta2.ClusterCondition, time.Duration) {
	var worst *verdict
	var wake time.Time
	if conflict {
		worst = &verdict{corev1.ConditionFalse, ReasonNameConflict, fmt.Sprintf(
			"spec.backup needs the name of EtcdBackup %s, which was not created for it; delete that EtcdBackup, or create it under another name", o.Scheduled.Name), time.Time{}}
	}
	for _, b := range o.Backups {
		v := o.judge(b, last)
		if v == nil {
			continue
		}
		if v.overdue.After(o.Now) && (wake.IsZero() || v.overdue.Before(wake)) {
			wake = v.overdue
		}
		if worst == nil || rank(v.status) > rank(worst.status) || (v.status == worst.status && v.message < worst.message) {
			worst = v
		}
	}
	if worst == nil {
		return nil, 0
	}
	after := time.Duration(0)
	if !wake.IsZero() {
		after = wake.Sub(o.Now) + time.Second
	}
	return o.stamp(worst), after
}

func rank(s corev1.ConditionStatus) int {
	switch s {
	case corev1.ConditionFalse:
		return 2
	case corev1.ConditionUnknown:
		return 1
	default:
		return 0
	}
}

// judge returns nil for a backup that is not of the cluster, not periodic, or suspended. One that no quorum confirmed
// lacks nothing if the last backup of the cluster is confirmed: that has as many writes.
func (o *ClusterObserved) judge(b *v1beta2.EtcdBackup, last *v1beta2.LastBackup) *verdict {
	policy := b.Spec.BackupPolicy
	schedule, err := ScheduleOf(policy, b.CreationTimestamp.Time)
	if err != nil || schedule == nil || policy.Suspend || !resources.BackupOf(b, o.Cluster.Name) {
		return nil
	}
	since := b.Status.LastSuccessDate.Time
	ahead := resources.IsFuture(since, o.Now)
	if created := resources.CreatedAt(o.Cluster, o.Now); ahead || since.Before(created) {
		since = b.CreationTimestamp.Time
		if since.Before(created) {
			since = created
		}
	}
	// One scheduled time may be missed; the next one may not.
	overdue := time.Time{}
	if next := schedule.Next(since); !next.IsZero() {
		if next = schedule.Next(next); !next.IsZero() {
			overdue = next.Add(overdueGrace)
		}
	}
	v := verdict{overdue: overdue}
	failed, why := whyFailed(b)
	switch {
	case failed:
		v.status, v.reason, v.message = corev1.ConditionFalse, ReasonBackupFailed, fmt.Sprintf("EtcdBackup %s: %s", b.Name, why)
	case ahead:
		v.status, v.reason, v.message = corev1.ConditionFalse, ReasonBackupOverdue, fmt.Sprintf(
			"EtcdBackup %s stored its last backup at %s, which is in the future: a clock was wrong then, so the age of that backup is unknown; the next backup corrects this",
			b.Name, b.Status.LastSuccessDate.UTC().Format(time.RFC3339))
	case !overdue.IsZero() && o.Now.After(overdue):
		v.status, v.reason, v.message = corev1.ConditionFalse, ReasonBackupOverdue, fmt.Sprintf(
			"EtcdBackup %s has stored no verified backup since %s", b.Name, since.UTC().Format(time.RFC3339))
	case b.Status.LastSuccessDate.IsZero():
		v.status, v.reason, v.message = corev1.ConditionUnknown, ReasonNoBackupYet, fmt.Sprintf("EtcdBackup %s has not stored a backup yet", b.Name)
	case mayHaveWrongData(b):
		v.status, v.reason, v.message = corev1.ConditionFalse, ReasonBackupDataDiffers, fmt.Sprintf(
			"EtcdBackup %s stored its last backup, revision %d, while the data of the members differed (alarm CORRUPT), so it may have the wrong data; older backups are kept. "+
				"Replace the member that differs as docs/how-to/corrupt-member.md says, and disarm the alarm. The next backup then ends this", b.Name, b.Status.EtcdRevision)
	case b.Status.Unconfirmed && last != nil && last.Unconfirmed:
		v.status, v.reason, v.message = corev1.ConditionFalse, ReasonBackupUnconfirmed, fmt.Sprintf(
			"EtcdBackup %s stored its last backup, revision %d, from a member that no quorum confirmed, so the newest writes may be missing. "+
				"Bring back a quorum, then make a backup at once: kubectl etcd backup %s -n %s", b.Name, b.Status.EtcdRevision, o.Cluster.Name, o.Cluster.Namespace)
	default:
		v.status, v.reason, v.message = corev1.ConditionTrue, ReasonBackupsCurrent, "every periodic backup was stored when it was due"
	}
	return &v
}

// whyFailed is true if the newest attempt that has ended failed. The phase and the reason are about the next attempt while
// that runs, and it has stored nothing yet. They are about an attempt that the controller ended itself, too.
func whyFailed(b *v1beta2.EtcdBackup) (failed bool, why string) {
	if c := meta.FindStatusCondition(b.Status.Conditions, ConditionSucceeded); c != nil {
		return c.Status == metav1.ConditionFalse, c.Message
	}
	return b.Status.Phase == v1beta2.BackupPhaseFailed, b.Status.Reason
}

// mayHaveWrongData is true if the data of the members differed when the last good backup was made.
func mayHaveWrongData(b *v1beta2.EtcdBackup) bool {
	c := meta.FindStatusCondition(b.Status.Conditions, ConditionSucceeded)
	return c != nil && c.Reason == ReasonStoredDataDiffers
}

// ScheduleRejected is the condition BackupHealthy while the API does not take the EtcdBackup that spec.backup needs.
func (o *ClusterObserved) ScheduleRejected(err error) *v1beta2.ClusterCondition {
	return o.stamp(&verdict{corev1.ConditionFalse, ReasonRejected, "spec.backup is not carried out: " + err.Error(), time.Time{}})
}

func (o *ClusterObserved) stamp(v *verdict) *v1beta2.ClusterCondition {
	now := o.Now.UTC().Format(time.RFC3339)
	c := v1beta2.ClusterCondition{
		Type: v1beta2.ClusterConditionBackupHealthy, Status: v.status, Reason: v.reason, Message: v.message,
		LastTransitionTime: now, LastUpdateTime: now, ObservedGeneration: o.Cluster.Generation,
	}
	for _, old := range o.Cluster.Status.Conditions {
		if old.Type != c.Type {
			continue
		}
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
			if old.Reason == c.Reason && old.Message == c.Message {
				c.LastUpdateTime = old.LastUpdateTime
			}
		}
	}
	return &c
}

// WithBackups returns the status of the cluster with what the plan says of its backups. The
// reconciler of EtcdClusters writes everything else in it.
func (p ClusterPlan) WithBackups(status *v1beta2.ClusterStatus) v1beta2.ClusterStatus {
	out := *status.DeepCopy()
	out.LastBackup = p.LastBackup.DeepCopy()
	kept := out.Conditions[:0]
	found := false
	for _, c := range out.Conditions {
		switch {
		case c.Type != v1beta2.ClusterConditionBackupHealthy:
			kept = append(kept, c)
		case p.Healthy != nil:
			found = true
			kept = append(kept, *p.Healthy)
		}
	}
	if p.Healthy != nil && !found {
		kept = append(kept, *p.Healthy)
	}
	out.Conditions = kept
	return out
}
