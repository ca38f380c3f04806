// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/restore"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// confirm makes sure that the live API shows the restore as it was observed. A cache that
// lags behind must not start again what has ended, nor continue what was cancelled.
func (r *Reconciler) confirm(ctx context.Context, s *seen) error {
	live, err := r.Objects.GetRestore(ctx, s.Restore.Namespace, s.Restore.Name)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the EtcdRestore was deleted: %w", reconcile.ErrStale)
	}
	if err != nil {
		return fmt.Errorf("read the restore: %w", err)
	}
	if live.UID != s.Restore.UID || live.ResourceVersion != s.Restore.ResourceVersion {
		return fmt.Errorf("the EtcdRestore has changed since it was observed: %w", reconcile.ErrStale)
	}
	return nil
}

// verify makes the Job that looks at the backup, or finds that an earlier life has.
func (r *Reconciler) verify(ctx context.Context, key types.NamespacedName, s *seen, plan planner.Plan) error {
	check := *plan.Check
	check.Image = r.AgentImage
	j, err := resources.RestoreJob(s.Restore, check)
	if err != nil {
		return fmt.Errorf("build the Job: %w", err)
	}
	if err := r.confirm(ctx, s); err != nil {
		return err
	}
	made, err := r.Objects.CreateJob(ctx, r.Platform.Job(j))
	switch {
	case err == nil:
		r.normal(s, EventVerifying, "Job %s reads the backup; nothing has been changed yet", made.Name)
	case apierrors.IsAlreadyExists(err):
		if made, err = r.Objects.GetJob(ctx, j.Namespace, j.Name); err != nil {
			return fmt.Errorf("read Job %s: %w", j.Name, err)
		}
		if !metav1.IsControlledBy(made, s.Restore) {
			return fmt.Errorf("create Job %s: the Job exists and has another owner: %w", j.Name, reconcile.ErrStale)
		}
	default:
		return fmt.Errorf("create Job %s: %w", j.Name, reconcile.MarkRejected(err))
	}
	r.Gate.Note(key, made)
	return nil
}

// setFinalizer puts the finalizer on the restore or takes it off.
func (r *Reconciler) setFinalizer(ctx context.Context, key types.NamespacedName, s *seen, on bool) error {
	update := s.Restore.DeepCopy()
	update.Finalizers = slices.DeleteFunc(update.Finalizers, func(f string) bool { return f == planner.Finalizer })
	if on {
		update.Finalizers = append(update.Finalizers, planner.Finalizer)
	}
	updated, err := r.Objects.UpdateRestore(ctx, update)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("change the finalizers: %w", err)
	}
	r.Gate.Note(key, updated)
	return nil
}

// createCluster makes the cluster that does not exist. It waits for the data.
func (r *Reconciler) createCluster(ctx context.Context, key types.NamespacedName, s *seen, plan planner.Plan) error {
	if err := r.confirm(ctx, s); err != nil {
		return err
	}
	made, err := r.Objects.CreateCluster(ctx, plan.Cluster)
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("EtcdCluster %s was created by another client: %w", plan.Cluster.Name, reconcile.ErrStale)
	}
	if err != nil {
		return fmt.Errorf("create EtcdCluster %s: %w", plan.Cluster.Name, reconcile.MarkRejected(err))
	}
	r.Gate.Note(key, made)
	r.normal(s, EventClusterCreated, "Created EtcdCluster %s, which did not exist; it starts with the data of the backup", made.Name)
	return nil
}

// copyData makes the EtcdBackup that stores the data that the cluster has now.
func (r *Reconciler) copyData(ctx context.Context, key types.NamespacedName, s *seen, plan planner.Plan) error {
	if err := r.confirm(ctx, s); err != nil {
		return err
	}
	made, err := r.Objects.CreateBackup(ctx, plan.Copy)
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("EtcdBackup %s was created by another client: %w", plan.Copy.Name, reconcile.ErrStale)
	}
	if err != nil {
		return fmt.Errorf("create EtcdBackup %s: %w", plan.Copy.Name, reconcile.MarkRejected(err))
	}
	r.Gate.Note(key, made)
	r.normal(s, EventPreRestoreBackup, "EtcdBackup %s stores the data that EtcdCluster %s has now", made.Name, s.Cluster.Name)
	return nil
}

// ask writes the request into the status of the cluster, on the version that was observed:
// whatever has happened to the cluster since then makes it fail.
func (r *Reconciler) ask(ctx context.Context, key types.NamespacedName, s *seen, plan planner.Plan) error {
	if err := r.confirm(ctx, s); err != nil {
		return err
	}
	update := s.Cluster.DeepCopy()
	update.Status.Recovery, update.Status.Restores = plan.Recovery.DeepCopy(), plan.Restores
	updated, err := r.Objects.UpdateClusterStatus(ctx, update)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the EtcdCluster was deleted: %w", reconcile.ErrStale)
	}
	if err != nil {
		return fmt.Errorf("request the recovery of the EtcdCluster: %w", err)
	}
	r.Gate.Note(key, updated)
	r.normal(s, EventRequested, "The backup of revision %d is verified; requested the recovery of EtcdCluster %s from it", plan.Revision, s.Cluster.Name)
	return nil
}

// cancel tells the cluster that the recovery is not wanted any more.
func (r *Reconciler) cancel(ctx context.Context, key types.NamespacedName, s *seen) error {
	update := s.Cluster.DeepCopy()
	update.Status.Recovery.Cancelled = true
	updated, err := r.Objects.UpdateClusterStatus(ctx, update)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the EtcdCluster was deleted: %w", reconcile.ErrStale)
	}
	if err != nil {
		return fmt.Errorf("cancel the recovery: %w", err)
	}
	r.Gate.Note(key, updated)
	r.normal(s, EventCancelled, "Requested EtcdCluster %s to cancel the restore", s.Cluster.Name)
	return nil
}

// discard deletes a cluster that was made for the restore and that has never served. If the API forbids that, as it does
// while spec.deletionProtection is true, the cluster stays, and the EtcdRestore ends: a user decides about the cluster.
func (r *Reconciler) discard(ctx context.Context, key types.NamespacedName, s *seen) error {
	only := metav1.Preconditions{UID: &s.Cluster.UID, ResourceVersion: &s.Cluster.ResourceVersion}
	err := r.Objects.DeleteCluster(ctx, s.Cluster.Namespace, s.Cluster.Name, only)
	if apierrors.IsForbidden(err) {
		r.Recorder.Eventf(s.Cluster, corev1.EventTypeWarning, EventClusterKept,
			"EtcdRestore %s was deleted, and this EtcdCluster, which was created for it, stays without its data: %v. To delete the EtcdCluster, set spec.deletionProtection=false and delete it", s.Restore.Name, err)
		return r.setFinalizer(ctx, key, s, false)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete EtcdCluster %s: %w", s.Cluster.Name, err)
	}
	return nil
}

func (r *Reconciler) normal(s *seen, reason, format string, args ...any) {
	r.Recorder.Eventf(s.Restore, corev1.EventTypeNormal, reason, format, args...)
}
