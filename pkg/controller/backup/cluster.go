// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/metrics"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Clusters keeps what an EtcdCluster says of its backups, and the EtcdBackup that its
// spec.backup asks for. It writes status.lastBackup and the condition BackupHealthy,
// which the controller of clusters leaves as they are; both write on the resource
// version that they have read, so neither undoes the other's.
type Clusters struct {
	Config
	held reconcile.Held
}

// NewClusters returns a Clusters for the configuration of a Reconciler.
func NewClusters(r *Reconciler, gate Gate) *Clusters {
	c := r.Config
	c.Gate = gate
	return &Clusters{Config: c}
}

// Reconcile looks at the backups of the EtcdCluster called key. It returns when to be
// called again if nothing happens before.
func (r *Clusters) Reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	c, err := r.Cache.Cluster(key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		r.Gate.Forget(key)
		r.held.Forget(key)
		metrics.ForgetClusterBackups(key)
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read cluster from the cache: %w", err)
	}
	if !r.Responsible(c) {
		return reconcile.ScopeRetry, nil
	}
	ready, err := r.held.IsReady(r.Gate, key, r.Clock.Now(), func() (metav1.Object, error) { return r.Objects.GetCluster(ctx, key.Namespace, key.Name) })
	if err != nil {
		return 0, err
	}
	if !ready {
		return reconcile.GateRetry, nil
	}
	o, size, err := r.observe(c)
	if err != nil {
		return 0, err
	}
	plan := planner.DecideCluster(o)
	for _, b := range plan.Behind {
		r.Wake(types.NamespacedName{Namespace: b.Namespace, Name: b.Name})
	}
	rejected := r.keepSchedule(ctx, key, c, plan)
	if rejected != nil && !reconcile.IsRejection(rejected) {
		return 0, rejected
	}
	if rejected != nil {
		plan.Healthy = o.ScheduleRejected(rejected)
	}
	metrics.ObserveClusterBackups(key, plan.LastBackup, size, plan.Healthy)
	return plan.RequeueAfter, errors.Join(rejected, r.writeStatus(ctx, key, c, plan))
}

// observe finds the backups of a cluster, and the size of the newest good one.
func (r *Clusters) observe(c *v1beta2.EtcdCluster) (planner.ClusterObserved, int64, error) {
	o := planner.ClusterObserved{Now: r.Clock.Now(), Cluster: c}
	all, err := r.Cache.Backups(c.Namespace)
	if err != nil {
		return o, 0, fmt.Errorf("list backups from the cache: %w", err)
	}
	var newest *v1beta2.EtcdBackup
	for _, b := range all {
		if b.Name == planner.ScheduledName(c.Name) {
			o.Scheduled = b
		}
		if !resources.IsBackupFor(c, b) {
			continue
		}
		o.Backups = append(o.Backups, b)
		if !resources.BackupOf(b, c.Name) {
			continue
		}
		if newest == nil || newest.Status.LastSuccessDate.Before(&b.Status.LastSuccessDate) {
			newest = b
		}
	}
	if newest == nil {
		return o, 0, nil
	}
	return o, newest.Status.SnapshotSize, nil
}

// keepSchedule makes the EtcdBackup of the cluster match spec.backup.
func (r *Clusters) keepSchedule(ctx context.Context, key types.NamespacedName, c *v1beta2.EtcdCluster, plan planner.ClusterPlan) error {
	switch {
	case plan.Create != nil:
		made, err := r.Objects.CreateBackup(ctx, plan.Create)
		if apierrors.IsAlreadyExists(err) {
			return nil // its event brings us back
		}
		if err != nil {
			return fmt.Errorf("create EtcdBackup %s: %w", plan.Create.Name, err)
		}
		r.Gate.Note(key, made)
		r.Recorder.Eventf(c, corev1.EventTypeNormal, EventScheduleCreated, "Created EtcdBackup %s for spec.backup", made.Name)
	case plan.Update != nil:
		updated, err := r.Objects.UpdateBackup(ctx, plan.Update)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("update EtcdBackup %s: %w", plan.Update.Name, err)
		}
		r.Gate.Note(key, updated)
		r.Recorder.Eventf(c, corev1.EventTypeNormal, EventScheduleChanged, "Updated EtcdBackup %s to follow spec.backup", updated.Name)
	}
	return nil
}

func (r *Clusters) writeStatus(ctx context.Context, key types.NamespacedName, c *v1beta2.EtcdCluster, plan planner.ClusterPlan) error {
	write := reconcile.StatusWrite[v1beta2.ClusterStatus]{Kind: reconcile.ClusterStatus, Gate: r.Gate, Key: key, Object: c, Current: c.Status, Now: r.Clock.Now()}
	_, err := write.Do(ctx,
		func() v1beta2.ClusterStatus { return plan.WithBackups(&c.Status) },
		func(status v1beta2.ClusterStatus) (metav1.Object, error) {
			update := c.DeepCopy()
			update.Status = status
			return r.Objects.UpdateClusterStatus(ctx, update)
		})
	return err
}
