// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// requestRestore creates the EtcdRestore of a cluster without any member, after a look at
// the live API. Its name derives from the lost members, so that only one restore is made.
func requestRestore(ctx context.Context, r *run, a planner.RequestRestore) error {
	if err := requireSameSpec(ctx, r); err != nil {
		return err
	}
	if err := requireLost(ctx, r, a.Lost); err != nil {
		return err
	}
	if recovery := r.seen.Record.Recovery; recovery != nil {
		for _, name := range recovery.OldMembers { // no label shows their PVCs
			if err := requireNoPVC(ctx, r, name); err != nil {
				return err
			}
		}
	}
	if err := requireAllLabelled(ctx, r); err != nil {
		return err
	}
	if err := requireNoOtherObjects(ctx, r, ""); err != nil {
		return err
	}
	_, err := r.Objects.CreateRestore(ctx, automaticRestore(r.seen.Cluster, a))
	if apierrors.IsAlreadyExists(err) {
		return nil // it was made before; its status reports the result
	}
	if err != nil {
		return fmt.Errorf("create EtcdRestore %s: %w", a.Name, reconcile.MarkRejected(err))
	}
	warning(r, EventRestoreRequested, "All members and their data are lost; EtcdRestore %s restores EtcdBackup %s", a.Name, a.Backup)
	return nil
}

// automaticRestore returns the EtcdRestore of a permanent quorum loss of c. It names the UID, so that it never restores
// into another cluster of that name.
func automaticRestore(c *v1beta2.EtcdCluster, a planner.RequestRestore) *v1beta2.EtcdRestore {
	restore := &v1beta2.EtcdRestore{
		ObjectMeta: metav1.ObjectMeta{
			Name: a.Name, Namespace: c.Namespace, Annotations: map[string]string{v1beta2.AnnotationAutomaticRestore: string(c.UID)},
		},
		Spec: v1beta2.RestoreSpec{EtcdCluster: v1beta2.EtcdClusterRef{Name: c.Name}, Backup: &v1beta2.BackupReference{Name: a.Backup}},
	}
	if a.Revision > 0 {
		restore.Spec.Backup.Revision = &a.Revision
	}
	return restore
}
