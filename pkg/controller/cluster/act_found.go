// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// takeBack makes exactly the object that was found one of this cluster.
func takeBack(ctx context.Context, r *run, a planner.TakeBack) error {
	if err := requireTakesBack(ctx, r); err != nil {
		return err
	}
	switch a.Kind {
	case planner.KindPVC:
		if err := requireNoSource(ctx, r, a.Name); err != nil {
			return err
		}
		return adopt(ctx, r, a, true, r.Objects.GetPVC, r.Objects.UpdatePVC)
	case planner.KindPod:
		return adopt(ctx, r, a, true, r.Objects.GetPod, r.Objects.UpdatePod)
	case planner.KindService:
		return adopt(ctx, r, a, true, r.Objects.GetService, r.Objects.UpdateService)
	case planner.KindBudget:
		return adopt(ctx, r, a, true, r.Objects.GetPodDisruptionBudget, r.Objects.UpdatePodDisruptionBudget)
	case planner.KindSecret:
		// No cache shows Secrets, so the gate could not wait for the Secret.
		r.secrets.invalidate(r.key)
		return adopt(ctx, r, a, false, r.Objects.GetSecret, r.Objects.UpdateSecret)
	case planner.KindRecord:
		return adopt(ctx, r, a, true, r.Objects.GetConfigMap, r.Objects.UpdateConfigMap)
	default:
		return fmt.Errorf("unknown kind %q", a.Kind)
	}
}

// requireTakesBack makes sure that the live spec still requests to take PVCs back, or that a live PVC shows that it did, as
// the planner has it.
func requireTakesBack(ctx context.Context, r *run) error {
	live, err := readSameCluster(ctx, r)
	if err != nil || live.TakesVolumesBack() {
		return err
	}
	pvcs, err := r.Objects.ListPVCs(ctx, live.Namespace, live.Name)
	if err != nil {
		return fmt.Errorf("list the PVCs: %w", err)
	}
	for i := range pvcs {
		if p := &pvcs[i]; p.DeletionTimestamp == nil && resources.Owns(live, p) && resources.TakenBackFrom(p) != "" {
			return nil
		}
	}
	return fmt.Errorf("spec.bootstrap.fromVolumes was removed before a PVC was taken back: %w", reconcile.ErrStale)
}

// adopt takes one object back, if the live object is the one that was found. If cached is true, the gate
// waits until the cache shows the write.
func adopt[T marked](
	ctx context.Context, r *run, a planner.TakeBack, cached bool,
	get func(context.Context, string, string) (T, error), update func(context.Context, T) (T, error),
) error {
	live, err := get(ctx, r.seen.Cluster.Namespace, a.Name)
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("read %s %s: %w", a.Kind, a.Name, err)
	}
	if err != nil || string(live.GetUID()) != a.UID || live.GetDeletionTimestamp() != nil || isOwned(r.seen, live) ||
		metav1.GetControllerOfNoCopy(live) != nil || resources.FormerClusterUID(live) != a.ClusterUID {
		return fmt.Errorf("%s %s has changed since it was found: %w", a.Kind, a.Name, reconcile.ErrStale)
	}
	changed, _ := live.DeepCopyObject().(T)
	if record, is := any(changed).(*corev1.ConfigMap); is {
		changed, _ = any(resources.WithRecord(r.seen.Cluster, record, resources.ParseRecord(record).WithoutPendingRecovery())).(T)
	} else {
		resources.TakeBack(r.seen.Cluster, changed)
	}
	updated, err := update(ctx, changed)
	if err != nil {
		return reconcile.StaleOnConflict(err)
	}
	if cached {
		r.Gate.Note(r.key, updated)
	}
	if a.Kind == planner.KindPVC {
		normal(r, EventVolumeTakenBack, "Took PVC %s back from the earlier cluster of this name with UID %s", a.Name, a.ClusterUID)
	}
	return nil
}
