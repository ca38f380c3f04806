// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/backup"
)

// observeNeeded finds out from the caches what needs an EtcdBackup that has a TTL.
func (r *Reconciler) observeNeeded(s *seen) error {
	b := s.Backup
	if b.Spec.TTL == nil || b.Spec.IsPeriodic() {
		return nil
	}
	restores, err := r.Cache.Restores(b.Namespace)
	if err != nil {
		return fmt.Errorf("list restores from the cache: %w", err)
	}
	backups, err := r.Cache.Backups(b.Namespace)
	if err != nil {
		return fmt.Errorf("list backups from the cache: %w", err)
	}
	s.Needed = planner.Needed(b, restores, backups, s.cluster, s.Now)
	return nil
}

// observeNeededLive does the same by the live API. The caches may not show an EtcdRestore that was created a moment ago,
// or that the newer backup was deleted. It takes the time again, which the kube-apiserver has told with the last list of Jobs.
func (r *Reconciler) observeNeededLive(ctx context.Context, s *seen) error {
	b := s.Backup
	restores, err := r.Objects.ListRestores(ctx, b.Namespace)
	if err != nil {
		return fmt.Errorf("list the restores that need the backup: %w", err)
	}
	backups, err := r.Objects.ListBackups(ctx, b.Namespace)
	if err != nil {
		return fmt.Errorf("list the backups of the cluster: %w", err)
	}
	cluster := s.cluster
	if ref := b.Spec.EtcdCluster; ref != nil {
		cluster, err = r.Objects.GetCluster(ctx, b.Namespace, ref.Name)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("read the cluster: %w", err)
		}
		if err != nil {
			cluster = nil
		}
	}
	s.Now = r.Clock.Now()
	s.Needed = planner.Needed(b, restores, backups, cluster, s.Now)
	return nil
}

// expire deletes an EtcdBackup whose TTL is over, if the live API confirms the decision. It deletes exactly the object
// that was read.
func (r *Reconciler) expire(ctx context.Context, key types.NamespacedName, s *seen) (time.Duration, error) {
	current, err := r.current(ctx, s)
	if err != nil || !current {
		return reconcile.GateRetry, err
	}
	if err := r.observeNeededLive(ctx, s); err != nil {
		return 0, err
	}
	if plan := planner.Decide(s.Observed); plan.Action != planner.ActionExpire {
		return plan.RequeueAfter, r.writeStatus(ctx, key, s, plan)
	}
	b := s.Backup
	err = r.Objects.DeleteBackup(ctx, b.Namespace, b.Name, metav1.Preconditions{UID: &b.UID, ResourceVersion: &b.ResourceVersion})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return reconcile.GateRetry, nil
	}
	if err != nil {
		return 0, fmt.Errorf("delete the EtcdBackup, whose TTL is over: %w", err)
	}
	stored := "it has stored nothing"
	if b.Status.URI != "" {
		stored = "what it has stored stays at " + b.Status.URI
	}
	r.Recorder.Eventf(b, corev1.EventTypeNormal, EventExpired, "spec.ttl of %s is over: %s", b.Spec.TTL.Duration, stored)
	return 0, nil
}
