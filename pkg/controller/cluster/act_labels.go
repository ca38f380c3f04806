// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
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
	if !metav1.IsControlledBy(live, r.seen.Cluster) {
		return fmt.Errorf("pod %s exists: %w", live.Name, reconcile.ErrNotOwned)
	}
	if err := requireNotDecommissioned(ctx, r, live); err != nil {
		return err
	}
	pod := live.DeepCopy()
	if !setLabels(&pod.ObjectMeta, r.seen.Cluster.Name) {
		r.Gate.Note(r.key, live)
		return nil
	}
	return updatePod(ctx, r, pod)
}

func restorePVCLabels(ctx context.Context, r *run, live *corev1.PersistentVolumeClaim) error {
	if !resources.Owns(r.seen.Cluster, live) {
		return fmt.Errorf("PVC %s exists: %w", live.Name, reconcile.ErrNotOwned)
	}
	if err := requireNotDecommissioned(ctx, r, live); err != nil {
		return err
	}
	pvc := live.DeepCopy()
	if !setLabels(&pvc.ObjectMeta, r.seen.Cluster.Name) {
		r.Gate.Note(r.key, live)
		return nil
	}
	return updatePVC(ctx, r, pvc)
}

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
		return fmt.Errorf("recovery %s has decommissioned member %s: %w", recovery.ID, live.GetName(), reconcile.ErrStale)
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

// setLabels gives an object of a member its labels, and says whether one was missing.
func setLabels(m *metav1.ObjectMeta, cluster string) bool {
	want := resources.Labels(cluster)
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
