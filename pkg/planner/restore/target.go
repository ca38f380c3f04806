// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// defaultSize is the size of a new cluster if no backup and no template sets it.
const defaultSize = 3

// scopeAnnotation says which controllers look after an object.
const scopeAnnotation = "etcd.database.coreos.com/scope"

// subject returns the cluster that the backup must fit: the existing cluster, or the one
// that will be created; nil if that follows from the backup.
func (o *Observed) subject() *v1beta2.EtcdCluster {
	switch {
	case o.Cluster != nil:
		return o.Cluster
	case o.Restore.Spec.ClusterTemplate != nil:
		return o.newCluster(nil)
	default:
		return nil
	}
}

// target is what the backup must fit.
func (o *Observed) target() resources.RestoreTarget {
	c := o.subject()
	if c == nil {
		return resources.RestoreTarget{}
	}
	target := resources.RestoreTargetOf(c)
	if o.Cluster == nil && o.followsVersion() {
		target.Version = ""
	}
	return target
}

// followsVersion is true if the cluster that the restore makes runs the version of etcd
// that the backup is of, because nothing names a version.
func (o *Observed) followsVersion() bool {
	t := o.Restore.Spec.ClusterTemplate
	return t == nil || t.Spec.Version == ""
}

// newCluster returns the cluster to make for a backup that was found good: as the template
// says, or a plain one of the version that the backup is of. It never starts empty,
// because it names the restore.
func (o *Observed) newCluster(found *Outcome) *v1beta2.EtcdCluster {
	r := o.Restore
	c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{
		Name: r.Spec.EtcdCluster.Name, Namespace: r.Namespace, Annotations: map[string]string{},
	}}
	if t := r.Spec.ClusterTemplate; t != nil {
		c.Labels, c.Spec = maps.Clone(t.Labels), *t.Spec.DeepCopy()
		maps.Copy(c.Annotations, t.Annotations)
		if found != nil && o.followsVersion() {
			// Empty if the backup does not say it: the API server knows a default.
			c.Spec.Version = found.EtcdVersion
		}
	} else {
		c.Spec = v1beta2.ClusterSpec{Replicas: ptr.To[int32](defaultSize), Version: found.EtcdVersion}
	}
	if scope, found := r.Annotations[scopeAnnotation]; found && c.Annotations[scopeAnnotation] == "" {
		c.Annotations[scopeAnnotation] = scope // the same controller reconciles both
	}
	c.Annotations[v1beta2.AnnotationRestore] = r.Name
	c.Annotations[v1beta2.AnnotationRestoreUID] = string(r.UID)
	return c
}

// obstacle is why the cluster cannot take the request now.
func (o *Observed) obstacle() *Wait {
	c := o.Cluster
	switch {
	case c.DeletionTimestamp != nil:
		return &Wait{Reason: ReasonClusterTerminating, Message: fmt.Sprintf("EtcdCluster %s is being deleted", c.Name)}
	case c.Spec.Paused:
		return o.paused()
	case c.Status.Phase == v1beta2.ClusterPhaseNone && !o.isMade():
		return &Wait{Reason: ReasonClusterNotObserved, Message: fmt.Sprintf("the controller has not written the status of EtcdCluster %s yet, which says what data it has and which restores it has had", c.Name)}
	case c.TakesVolumesBack() && !o.isServed(), c.Status.BlockedBy != nil && c.Status.BlockedBy.Reason == v1beta2.ReasonVolumesFound:
		return &Wait{Reason: ReasonClusterAwaitsVolumes, Message: fmt.Sprintf("EtcdCluster %s begins beside PVCs of an earlier cluster of its name and has not served with them", c.Name)}
	case ptr.Deref(c.Spec.Replicas, 0) == 0:
		return &Wait{Reason: ReasonClusterHibernated, Message: fmt.Sprintf("EtcdCluster %s is declared to have no members: set spec.size", c.Name)}
	case c.Status.Recovery.IsInProgress():
		return &Wait{Reason: ReasonRecoveryUnderWay, Message: fmt.Sprintf("another recovery of EtcdCluster %s is under way; see its status.recovery", c.Name)}
	}
	for _, other := range o.Others {
		// The cluster must respond to one request before another restore makes the next.
		phase := other.Status.Phase
		if phase == v1beta2.RestorePhaseRestoring || phase == v1beta2.RestorePhaseStarting {
			return &Wait{Reason: ReasonAnotherRestore, Message: fmt.Sprintf("EtcdRestore %s of the same cluster is under way", other.Name)}
		}
	}
	return nil
}

// expectedLoss says what the cluster will not have after a restore in place.
func (o *Observed) expectedLoss(revision int64) string {
	text := fmt.Sprintf("everything that was written after revision %d of the backup", revision)
	if c := o.Restore.Status.PreRestoreBackup; c != nil {
		text += fmt.Sprintf("; EtcdBackup %s has it up to revision %d", c.Backup, c.Revision)
	}
	if back := o.goesBack(revision); back != "" {
		text += "; " + back
	}
	return text
}

// requestRecovery asks the cluster to continue from the backup.
func requestRecovery(o *Observed) Plan {
	found := o.newest().Outcome
	plan := Plan{Phase: v1beta2.RestorePhaseVerifying, Revision: found.Revision}
	place, wait := o.source()
	if wait == nil {
		place, wait = verified(place, found)
	}
	if wait != nil {
		plan.Wait = wait
		return plan
	}
	plan.Action = ActionRequestRecovery
	plan.Recovery = &v1beta2.RecoveryStatus{
		ID: o.id(), Trigger: v1beta2.RecoveryTriggerRestore, Phase: v1beta2.RecoveryPhasePending,
		Source:       v1beta2.RecoverySource{Restore: o.Restore.Name, Backup: place},
		RevisionBump: o.bump(found.Revision), OnlyIfUnresponsive: o.onlyIfUnresponsive(), RequestedAt: metav1.NewTime(o.Now.Truncate(time.Second)),
	}
	plan.Restores = o.withRestore(found.Revision)
	if !o.fills() {
		plan.Recovery.ExpectedLoss = o.expectedLoss(found.Revision)
	}
	return plan
}
