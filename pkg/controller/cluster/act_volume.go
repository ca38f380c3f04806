// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// stopSource deletes the pod of the member whose PVC a recovery reads. What the live API says must
// still prove that the quorum is permanently lost, because a quorum that can come back needs this pod.
func stopSource(ctx context.Context, r *run, a planner.StopSource) error {
	recovery := &a.Recovery
	if err := requireNotCancelled(ctx, r, recovery); err != nil {
		return err
	}
	if _, err := requireSamePhase(ctx, r, recovery); err != nil {
		return err
	}
	if err := requireSameStatus(ctx, r); err != nil {
		return err
	}
	if err := requireLost(ctx, r, a.Lost); err != nil {
		return err
	}
	if err := requireNoneServesUnseen(ctx, r); err != nil {
		return err
	}
	if err := requirePVC(ctx, r, recovery.Source.PVC); err != nil {
		return err
	}
	seen := r.seen.podOf(recovery.Source.Member)
	if seen == nil {
		return fmt.Errorf("pod %s was not observed: %w", recovery.Source.Member, reconcile.ErrStale)
	}
	live, err := readOwnedPod(ctx, r, seen.Name, seen.UID)
	if err != nil || live == nil {
		return err
	}
	err = r.Objects.DeletePod(ctx, live.Namespace, live.Name, metav1.Preconditions{UID: &live.UID})
	if isNotFound(err) {
		return nil
	}
	if err == nil {
		warning(r, EventSourceStopped, "Member %s is stopped: it does not respond, and the recovery reads its PVC", live.Name)
	}
	return reconcile.StaleOnConflict(err)
}

// requireSourceStopped makes sure, in the live API, that no etcd runs on the PVC that a recovery
// reads, and that the PVC stays. It returns true if that PVC no longer exists, and the recovery member has a PVC, which may
// hold the copy already. A pod that mounts a PVC that does not exist would wait for ever.
func requireSourceStopped(ctx context.Context, r *run, recovery *v1beta2.RecoveryStatus) (lost bool, err error) {
	if recovery.Source.PVC == "" || recovery.Phase != v1beta2.RecoveryPhaseFilling {
		return false, nil
	}
	if err := requireEnded(ctx, r, recovery.Source.Member); err != nil {
		return false, err
	}
	if _, err := r.Objects.GetPVC(ctx, r.seen.Cluster.Namespace, recovery.Source.PVC); isNotFound(err) {
		_, err := requireRecoveryPVC(ctx, r, recovery.RecoveryMember)
		return true, err
	}
	return false, requirePVC(ctx, r, recovery.Source.PVC)
}

// requireNotRead makes sure, in the live API, that no recovery reads the PVC of a member that is about
// to start. An observation from before the recovery shows a member that has only stopped.
func requireNotRead(ctx context.Context, r *run, name string) error {
	if r.seen.Etcd.Linearizable {
		return nil // a recovery reads a PVC only while no quorum responds
	}
	_, record, err := readRecord(ctx, r)
	if err != nil {
		return err
	}
	if recovery := record.Recovery; recovery.IsInProgress() && recovery.Source.PVC == name && recovery.Phase != v1beta2.RecoveryPhasePending {
		return fmt.Errorf("recovery %s reads PVC %s: %w", recovery.ID, name, reconcile.ErrStale)
	}
	return nil
}

func mounts(volumes []corev1.Volume, pvc string) bool {
	return slices.ContainsFunc(volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == pvc
	})
}
