// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// fenceOldMembers decommissions the old members. First every pod and PVC loses its label,
// then the pods are deleted. The PVCs stay. This covers all objects under the old names, all
// pods that the cluster controls and all PVCs with its label.
func fenceOldMembers(ctx context.Context, r *run, a planner.FenceOldMembers) error {
	recovery := &a.Recovery
	record, err := requireSamePhase(ctx, r, recovery)
	if err != nil {
		return err
	}
	if err := copyRecovery(ctx, r, recovery, record.Recoveries); err != nil {
		return err
	}
	pods, pvcs, err := listOldObjects(ctx, r, recovery, record.BootstrapMember)
	if err != nil {
		return err
	}
	// Another process may have ended the recovery meanwhile, and what was listed may be members that
	// have joined since. Before they join, the record says that it has ended.
	if _, err := requireSamePhase(ctx, r, recovery); err != nil {
		return err
	}
	if recovery.OnlyIfUnresponsive {
		// The recovery member has restarted since the cutover began, and nothing stores the data of the old members.
		if err := requireNoneResponds(ctx, r); err != nil {
			return err
		}
	}
	for i := range pvcs {
		pvc := pvcs[i].DeepCopy()
		if !resources.IsFenced(&pvc.Labels, r.seen.Cluster.Name) {
			continue
		}
		if err := updatePVC(ctx, r, pvc); err != nil {
			return err
		}
	}
	for i := range pods {
		pod := pods[i].DeepCopy()
		if !resources.IsFenced(&pod.Labels, r.seen.Cluster.Name) {
			continue
		}
		if err := updatePod(ctx, r, &pods[i], pod); err != nil {
			return err
		}
	}
	ending, unreported := "", []string(nil)
	for i := range pods {
		if end := pods[i].DeletionTimestamp; end != nil {
			if diagnosis.EvidenceOf(&pods[i]).HasEnded() {
				continue
			}
			ending = pods[i].Name
			if r.Clock.Now().After(end.Add(fenceGrace)) {
				unreported = append(unreported, fmt.Sprintf("pod %s on node %s", pods[i].Name, pods[i].Spec.NodeName))
			}
			continue
		}
		ending = pods[i].Name
		// A leader whose peers end at the same time would wait for seven seconds for one of them to take over. What it has
		// acknowledged is on its disk.
		err := r.Objects.StopPod(ctx, pods[i].Namespace, pods[i].Name, metav1.Preconditions{UID: &pods[i].UID})
		if err != nil && !isNotFound(err) {
			return reconcile.StaleOnConflict(err)
		}
	}
	if len(unreported) > 0 {
		return fmt.Errorf("%s: %w", strings.Join(unreported, ", "), errNotEnded)
	}
	if ending != "" {
		return fmt.Errorf("pod %s is ending: %w", ending, reconcile.ErrStale)
	}
	return requireObservedRecoveryMember(ctx, r, recovery.RecoveryMember)
}

// requireObservedRecoveryMember makes sure that the recovery member still runs in the pod that was observed
// to serve. It may have been lost while the pods of the old members ended, and another controller may have
// created it again, to be filled once more. It is published only after it serves.
func requireObservedRecoveryMember(ctx context.Context, r *run, name string) error {
	observed := r.seen.RecoveryMember.Pod
	live, err := r.Objects.GetPod(ctx, r.seen.Cluster.Namespace, name)
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("read pod %s: %w", name, err)
	}
	if err != nil || observed == nil || string(live.UID) != observed.UID {
		return fmt.Errorf("pod %s of the recovery member is not the one that was observed: %w", name, reconcile.ErrStale)
	}
	return nil
}

// fenceGrace is how long after its deadline the controller waits for the pod of an old
// member before it reports what is missing. The node of the pod does not respond then.
// Clients may still reach the member there, and so may other members with which it has a
// quorum. Nothing continues before there is evidence that the pod has ended.
const fenceGrace = 10 * time.Second

// errNotEnded means that a pod has not ended although its time is over.
var errNotEnded = errors.New("the node has not reported the end of the pod, so its member may still serve clients")

// listOldObjects returns the pods and PVCs of the cluster except those of the recovery
// member, as they are in the live API. Objects that no member has used stay for later
// members. A pod that has lost its labels, and whose member no status names, serves like the others.
func listOldObjects(ctx context.Context, r *run, recovery *v1beta2.RecoveryStatus, bootstrapMember string) ([]corev1.Pod, []corev1.PersistentVolumeClaim, error) {
	namespace := r.seen.Cluster.Namespace
	listedPods, err := r.Objects.ListControlledPods(ctx, r.seen.Cluster)
	if err != nil {
		return nil, nil, fmt.Errorf("list the pods: %w", err)
	}
	listedPVCs, err := r.Objects.ListPVCs(ctx, namespace, r.seen.Cluster.Name)
	if err != nil {
		return nil, nil, fmt.Errorf("list the PVCs: %w", err)
	}
	names := map[string]bool{}
	for i := range listedPods {
		names[listedPods[i].Name] = true
	}
	for i := range listedPVCs {
		names[listedPVCs[i].Name] = true
	}
	for _, name := range recovery.OldMembers {
		names[name] = true
	}
	// Its PVC may have lost its labels before a status named the member.
	names[bootstrapMember] = true
	delete(names, "")
	delete(names, recovery.RecoveryMember)
	var pods []corev1.Pod
	var pvcs []corev1.PersistentVolumeClaim
	for _, name := range slices.Sorted(maps.Keys(names)) {
		pod, err := r.Objects.GetPod(ctx, namespace, name)
		if err == nil && resources.Owns(r.seen.Cluster, pod) && !r.seen.isPrepared(pod) {
			pods = append(pods, *pod)
		} else if err != nil && !isNotFound(err) {
			return nil, nil, fmt.Errorf("read pod %s: %w", name, err)
		}
		pvc, err := r.Objects.GetPVC(ctx, namespace, name)
		if err == nil && resources.Owns(r.seen.Cluster, pvc) && !r.seen.isPrepared(pvc) {
			pvcs = append(pvcs, *pvc)
		} else if err != nil && !isNotFound(err) {
			return nil, nil, fmt.Errorf("read PVC %s: %w", name, err)
		}
	}
	return pods, pvcs, nil
}

// publishRecoveryMember puts the recovery member behind the Services.
func publishRecoveryMember(ctx context.Context, r *run, a planner.PublishRecoveryMember) error {
	name := a.Name
	pvc, err := r.Objects.GetPVC(ctx, r.seen.Cluster.Namespace, name)
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("read PVC %s: %w", name, err)
	}
	if err == nil && resources.Owns(r.seen.Cluster, pvc) {
		pvc = pvc.DeepCopy()
		if resources.IsPublished(&pvc.Labels, r.seen.Cluster.Name) {
			if err := updatePVC(ctx, r, pvc); err != nil {
				return err
			}
		}
	}
	pod, err := r.Objects.GetPod(ctx, r.seen.Cluster.Namespace, name)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read pod %s: %w", name, err)
	}
	if !resources.Owns(r.seen.Cluster, pod) {
		return fmt.Errorf("pod %s was replaced since it was observed: %w", name, reconcile.ErrStale)
	}
	published := pod.DeepCopy()
	if !resources.IsPublished(&published.Labels, r.seen.Cluster.Name) {
		return nil
	}
	return updatePod(ctx, r, pod, published)
}

// cleanUpOldPVCs deletes the PVCs of the old members. It releases a PVC instead if the user wants to
// keep the PVCs of removed members, or if the plan keeps it. It also releases one that was taken back and that no
// quorum has confirmed.
func cleanUpOldPVCs(ctx context.Context, r *run, a planner.CleanUpOldPVCs) error {
	recovery := &a.Recovery
	var failed []error
	for _, name := range recovery.OldMembers {
		pvc, err := r.Objects.GetPVC(ctx, r.seen.Cluster.Namespace, name)
		if isNotFound(err) {
			continue
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("read PVC %s: %w", name, err))
			continue
		}
		if !resources.Owns(r.seen.Cluster, pvc) || pvc.DeletionTimestamp != nil || pvc.Labels[resources.LabelFenced] != r.seen.Cluster.Name {
			continue
		}
		kept := slices.Contains(a.Kept, name)
		if kept || resources.RetainsRemoved(r.seen.Cluster) {
			err = updatePVC(ctx, r, resources.Released(r.seen.Cluster, pvc))
		} else {
			err = deleteOrReleasePVC(ctx, r, pvc)
		}
		if kept && err == nil {
			warning(r, EventPVCKept, "PVC %s of old member %s is kept, because it may hold data that the cluster does not have. Delete the PVC when all members of the cluster serve and you do not need that data. If a quota keeps members from joining until then, make a backup and copy this data first", name, name)
		}
		if err != nil && !isNotFound(err) {
			failed = append(failed, reconcile.StaleOnConflict(err))
		}
	}
	return errors.Join(failed...)
}
