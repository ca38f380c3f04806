// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// requestRestore makes the EtcdRestore of a cluster of which nothing is left, after a live
// look that this is so. Its name is that of the members that were lost: it is made once.
func (r *Reconciler) requestRestore(ctx context.Context, key types.NamespacedName, s *seen, a planner.RequestRestore) error {
	if err := r.confirmSpec(ctx, s); err != nil {
		return err
	}
	for _, name := range a.Lost {
		if err := r.confirmEnded(ctx, s, name); err != nil {
			return err
		}
		if err := r.confirmLost(ctx, key, s, name); err != nil {
			return err
		}
	}
	if err := r.confirmAlone(ctx, s, ""); err != nil {
		return err
	}
	restore := &v1beta2.EtcdRestore{
		ObjectMeta: metav1.ObjectMeta{Name: a.Name, Namespace: s.Cluster.Namespace},
		Spec: v1beta2.RestoreSpec{
			EtcdCluster: v1beta2.EtcdClusterRef{Name: s.Cluster.Name}, Backup: &v1beta2.BackupReference{Name: a.Backup},
		},
	}
	_, err := r.Objects.CreateRestore(ctx, restore)
	if apierrors.IsAlreadyExists(err) {
		return nil // it was made before; its status says what came of it
	}
	if err != nil {
		return fmt.Errorf("make EtcdRestore %s: %w", a.Name, ending(err))
	}
	r.warning(s, EventRestoreRequested, "Nothing is left of the cluster; EtcdRestore %s restores EtcdBackup %s", a.Name, a.Backup)
	return nil
}
