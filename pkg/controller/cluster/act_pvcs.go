// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// repairPVC gives a PVC the declared owner and size. It checks the spec first. If a user
// has just removed the owner from a PVC, restoring the owner would delete the data together
// with the cluster.
func repairPVC(ctx context.Context, r *run, a planner.RepairPVC) error {
	if err := requireSameSpec(ctx, r); err != nil {
		return err
	}
	live, err := readOwnedPVC(ctx, r, a.Name, a.UID)
	if err != nil || live == nil {
		return err
	}
	pvc, drifted := resources.PVCDrift(r.seen.Cluster, live)
	drifted = resources.CopyRecoveries(pvc, r.seen.Record.Recoveries) || drifted
	if growth, _ := resources.PVCGrowth(r.seen.Cluster, live); growth != resources.GrowthDue {
		if !drifted {
			return nil
		}
		return updatePVC(ctx, r, pvc)
	}
	err = updatePVC(ctx, r, resources.GrownPVC(r.seen.Cluster, pvc))
	switch {
	case err == nil:
		normal(r, EventVolumeGrows, "Requested the declared volume size for the PVC of member %s", a.Name)
		return nil
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		// Noted where the next observation finds it, so that it is not asked for each time.
		if noted := updatePVC(ctx, r, resources.GrowthRejectedPVC(r.seen.Cluster, pvc, err.Error())); noted != nil {
			return fmt.Errorf("%w; then: %w", err, noted)
		}
		warning(r, EventGrowthRejected, "Kubernetes rejected the declared volume size of member %s: %v", a.Name, err)
		return nil
	default:
		return err
	}
}

// createBootstrapPVC creates the PVC of the bootstrap member, while the cluster has never served. Later
// the missing PVC is the proof that the member has lost its data and must be replaced. On an empty
// PVC it would never start.
func createBootstrapPVC(ctx context.Context, r *run, a planner.CreatePVC) error {
	pvc := resources.PVC(r.seen.Cluster, a.Name)
	if pvc == nil {
		return nil
	}
	if err := requireBootstrapMember(ctx, r, a.Name); err != nil {
		return err
	}
	return createPVC(ctx, r, pvc, "")
}

// createPVC creates a PVC for a member that will run a version; empty for the declared
// version.
func createPVC(ctx context.Context, r *run, pvc *corev1.PersistentVolumeClaim, version string) error {
	metav1.SetMetaDataAnnotation(&pvc.ObjectMeta, resources.AnnotationVersion, resources.Version(atVersion(r.seen.Cluster, version)))
	created, err := r.Objects.CreatePVC(ctx, pvc)
	if apierrors.IsAlreadyExists(err) {
		live, getErr := r.Objects.GetPVC(ctx, r.seen.Cluster.Namespace, pvc.Name)
		if getErr != nil {
			return fmt.Errorf("read PVC %s: %w", pvc.Name, getErr)
		}
		return restorePVCLabels(ctx, r, live)
	}
	if err != nil {
		return reconcile.MarkRejected(err)
	}
	r.Gate.Note(r.key, created)
	return nil
}

func deletePVC(ctx context.Context, r *run, a planner.DeletePVC) error {
	live, err := readOwnedPVC(ctx, r, a.Name, a.UID)
	if err != nil || live == nil {
		return err
	}
	if a.Why == planner.DeletePVCPrepared {
		if !r.seen.isPrepared(live) {
			return fmt.Errorf("PVC %s was admitted, or its member has started: %w", a.Name, reconcile.ErrStale)
		}
		// Its pod may be unusable only because garbage collection deletes it. That happens if the API
		// has lost the EtcdCluster, and then no PVC goes.
		if _, err := readSameCluster(ctx, r); err != nil {
			return err
		}
	}
	if err := requireNotJoining(ctx, r, live); err != nil {
		return err
	}
	return deleteOrReleasePVC(ctx, r, live)
}

// deleteOrReleasePVC deletes exactly this PVC of a cluster that goes on. It releases one that was taken back and
// that no quorum has confirmed, whatever was decided: nothing proves that its data is superfluous.
func deleteOrReleasePVC(ctx context.Context, r *run, live *corev1.PersistentVolumeClaim) error {
	var err error
	if resources.TakenBackFrom(live) != "" {
		err = updatePVC(ctx, r, resources.Released(r.seen.Cluster, live))
	} else {
		err = r.Objects.DeletePVC(ctx, live.Namespace, live.Name, metav1.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion})
	}
	if isNotFound(err) {
		return nil
	}
	return reconcile.StaleOnConflict(err)
}

// confirmPVC writes down that the member of a PVC has started.
func confirmPVC(ctx context.Context, r *run, a planner.ConfirmPVC) error {
	live, err := readOwnedPVC(ctx, r, a.Name, a.UID)
	if err != nil || live == nil {
		return err
	}
	if pvc, differs := resources.JoinedPVC(live); differs {
		return updatePVC(ctx, r, pvc)
	}
	return nil
}

// requireConfirmed makes sure, in the live API, that no PVC says that its member is joining: the list of
// members is about to change.
func requireConfirmed(ctx context.Context, r *run) error {
	for i := range r.seen.Etcd.Members {
		m := &r.seen.Etcd.Members[i]
		if m.Unmanaged || resources.PVC(r.seen.Cluster, m.Name) == nil {
			continue
		}
		live, err := r.Objects.GetPVC(ctx, r.seen.Cluster.Namespace, m.Name)
		if err != nil && !isNotFound(err) {
			return fmt.Errorf("read PVC %s: %w", m.Name, err)
		}
		// No pod starts any more on a PVC that is being deleted, and none starts without data on one
		// that was released.
		if err == nil && resources.IsJoining(live) && live.DeletionTimestamp == nil && resources.Owns(r.seen.Cluster, live) {
			return fmt.Errorf("PVC %s does not say yet that its member has started: %w", m.Name, reconcile.ErrStale)
		}
	}
	return nil
}

// requireJoining makes sure, in the live API, that the PVC of a member still says that it is joining.
func requireJoining(ctx context.Context, r *run, name string) error {
	live, err := r.Objects.GetPVC(ctx, r.seen.Cluster.Namespace, name)
	if err != nil {
		return fmt.Errorf("read PVC %s: %w", name, err)
	}
	if !resources.Owns(r.seen.Cluster, live) || !resources.IsJoining(live) {
		return fmt.Errorf("the member of PVC %s has joined meanwhile: %w", name, reconcile.ErrStale)
	}
	return nil
}

func releasePVC(ctx context.Context, r *run, a planner.ReleasePVC) error {
	live, err := readOwnedPVC(ctx, r, a.Name, a.UID)
	if err != nil || live == nil {
		return err
	}
	if err := requireNotJoining(ctx, r, live); err != nil {
		return err
	}
	return updatePVC(ctx, r, resources.Released(r.seen.Cluster, live))
}

// requireNotJoining makes sure that a PVC that is about to go is not one of the second voter of an etcd
// without learners. Another controller admits the PVC first, then the pod, and adds the member last. So
// for a moment only the live pod says that the member comes. A pod that was not admitted is deleted
// here, as it was read: the other controller can no longer admit it then.
func requireNotJoining(ctx context.Context, r *run, live *corev1.PersistentVolumeClaim) error {
	if !resources.IsJoining(live) {
		return nil
	}
	pod, err := r.Objects.GetPod(ctx, live.Namespace, live.Name)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read pod %s: %w", live.Name, err)
	}
	if !resources.Owns(r.seen.Cluster, pod) || pod.DeletionTimestamp != nil {
		return nil
	}
	if !r.seen.isPrepared(pod) {
		return fmt.Errorf("pod %s was admitted: %w", pod.Name, reconcile.ErrStale)
	}
	err = r.Objects.DeletePod(ctx, pod.Namespace, pod.Name, metav1.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion})
	if isNotFound(err) {
		return nil
	}
	return reconcile.StaleOnConflict(err)
}

func updatePVC(ctx context.Context, r *run, pvc *corev1.PersistentVolumeClaim) error {
	updated, err := r.Objects.UpdatePVC(ctx, pvc)
	if err != nil {
		return reconcile.StaleOnConflict(err)
	}
	r.Gate.Note(r.key, updated)
	return nil
}

// readOwnedPVC reads a PVC and returns it if it is the observed PVC and belongs to the
// cluster; nil if it no longer exists.
func readOwnedPVC(ctx context.Context, r *run, name, uid string) (*corev1.PersistentVolumeClaim, error) {
	live, err := r.Objects.GetPVC(ctx, r.seen.Cluster.Namespace, name)
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read PVC %s: %w", name, err)
	}
	if string(live.UID) != uid || !resources.Owns(r.seen.Cluster, live) {
		return nil, fmt.Errorf("PVC %s was replaced since it was observed: %w", name, reconcile.ErrStale)
	}
	if live.DeletionTimestamp != nil {
		return nil, nil
	}
	return live, nil
}
