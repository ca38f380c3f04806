// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// The caches hold only objects with the labels of members. One that has lost them is
// there and is not seen: making it fails for ever, and a member that runs looks like
// one that is lost. The functions here are called where that comes to light, and give
// the labels back.

func restorePodLabels(ctx context.Context, r *run, live *corev1.Pod) error {
	if !resources.Owns(r.seen.Cluster, live) {
		return fmt.Errorf("pod %s exists: %w", live.Name, reconcile.ErrNotOwned)
	}
	if err := requireNotDecommissioned(ctx, r, live); err != nil {
		return err
	}
	pod := live.DeepCopy()
	if !setLabels(r, &pod.ObjectMeta) {
		r.Gate.Note(r.key, live)
		return nil
	}
	return updatePod(ctx, r, live, pod)
}

func restorePVCLabels(ctx context.Context, r *run, live *corev1.PersistentVolumeClaim) error {
	if !resources.Owns(r.seen.Cluster, live) {
		return fmt.Errorf("PVC %s exists: %w", live.Name, reconcile.ErrNotOwned)
	}
	if err := requireNotDecommissioned(ctx, r, live); err != nil {
		return err
	}
	pvc := live.DeepCopy()
	if !setLabels(r, &pvc.ObjectMeta) {
		r.Gate.Note(r.key, live)
		return nil
	}
	return updatePVC(ctx, r, pvc)
}

// requireAllLabelled makes sure, in the live API, that no pod of the cluster has lost its labels. Where no
// status names its member, because the API was brought back from before that, nothing else shows the pod.
func requireAllLabelled(ctx context.Context, r *run) error {
	pods, err := r.Objects.ListControlledPods(ctx, r.seen.Cluster)
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	for i := range pods {
		live := observedPod(r.seen.Cluster, &pods[i])
		if !live.Owned || live.Finished || pods[i].Labels[resources.LabelFenced] == r.seen.Cluster.Name || !hasLostLabels(r, &pods[i].ObjectMeta) {
			continue
		}
		if err := restorePodLabels(ctx, r, &pods[i]); err != nil {
			return err
		}
		return fmt.Errorf("pod %s had lost its labels: %w", live.Name, reconcile.ErrStale)
	}
	return nil
}

// errOldDataKept means that the PVC of an old member was kept when its recovery ended. No later observation changes that.
var errOldDataKept = errors.New("its PVC was kept because the new members were lost at once, and may hold newer data than the last backup")

// requireNotKept makes sure that a PVC is not one that a recovery has kept and that no label shows.
func requireNotKept(ctx context.Context, r *run, pvc *corev1.PersistentVolumeClaim) error {
	if pvc.Labels[resources.LabelFenced] != r.seen.Cluster.Name || pvc.Labels[resources.LabelCluster] != "" {
		return nil
	}
	_, record, err := readRecord(ctx, r)
	if err != nil {
		return err
	}
	if recovery := record.Recovery; recovery != nil && recovery.Phase == v1beta2.RecoveryPhaseSucceeded {
		return fmt.Errorf("recovery member %s has replaced old member %s: %w", recovery.RecoveryMember, pvc.Name, errOldDataKept)
	}
	return nil
}

// errDecommissioned: a recovery has taken the objects of a member away, and they stay as they are.
var errDecommissioned = errors.New("a recovery has decommissioned it")

// requireNotDecommissioned makes sure that no member comes back that a recovery has decommissioned:
// beside the recovery member it would be a second etcd for clients. A cache from before the
// recovery shows the old members as they were. They come back only if the recovery was abandoned.
func requireNotDecommissioned(ctx context.Context, r *run, live metav1.Object) error {
	if live.GetLabels()[resources.LabelFenced] != r.seen.Cluster.Name {
		return nil
	}
	_, record, err := readRecord(ctx, r)
	if err != nil {
		return err
	}
	if recovery := record.Recovery; recovery != nil && recovery.Phase != v1beta2.RecoveryPhaseAbandoned {
		return fmt.Errorf("recovery %s, member %s: %w: %w", recovery.ID, live.GetName(), errDecommissioned, reconcile.ErrStale)
	}
	return nil
}

// repairUncachedService repairs a service that the cache does not show.
func repairUncachedService(ctx context.Context, r *run, name string, repaired drift) error {
	live, err := r.Objects.GetService(ctx, r.seen.Cluster.Namespace, name)
	if err != nil {
		return fmt.Errorf("read Service %s: %w", name, err)
	}
	if !resources.Owns(r.seen.Cluster, live) {
		return fmt.Errorf("service %s exists: %w", name, reconcile.ErrNotOwned)
	}
	return repairService(ctx, r, live, repaired)
}

// setLabels gives an object of a member its labels, and says whether one was missing. A recovery
// member that is not published to clients stays hidden from the Services.
func setLabels(r *run, m *metav1.ObjectMeta) bool {
	want := resources.Labels(r.seen.Cluster.Name)
	if isUnpublished(r, m) {
		want = resources.RecoveryLabels(r.seen.Cluster.Name)
	}
	want[resources.LabelMember] = m.Name
	changed := false
	for k, v := range want {
		if m.Labels[k] != v {
			metav1.SetMetaDataLabel(m, k, v)
			changed = true
		}
	}
	return changed
}

// isUnpublished is true for an object of a recovery member that clients must not reach yet, even if the
// object has lost all its labels.
func isUnpublished(r *run, live metav1.Object) bool {
	if resources.IsHidden(live.GetLabels(), r.seen.Cluster.Name) {
		return true
	}
	recovery := r.seen.Record.Recovery
	return recovery != nil && recovery.RecoveryMember == live.GetName() && live.GetLabels()[resources.LabelCluster] == "" &&
		(recovery.Phase == v1beta2.RecoveryPhaseFilling || recovery.Phase == v1beta2.RecoveryPhaseCutover)
}

// hasLostLabels is true for an object of a member that the caches may not show, because a label is
// missing.
func hasLostLabels(r *run, live *metav1.ObjectMeta) bool {
	return setLabels(r, live.DeepCopy())
}
