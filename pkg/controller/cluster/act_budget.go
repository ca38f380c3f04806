// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// ensureBudget makes the pod disruption budget or brings it up to date.
func ensureBudget(ctx context.Context, r *run, a planner.EnsurePodDisruptionBudget) error {
	want := resources.PodDisruptionBudget(r.seen.Cluster, a.Voters)
	created, err := r.Objects.CreatePodDisruptionBudget(ctx, want)
	if err == nil {
		r.Gate.Note(r.key, created)
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	live, err := r.Objects.GetPodDisruptionBudget(ctx, want.Namespace, want.Name)
	if err != nil {
		return fmt.Errorf("read the PodDisruptionBudget: %w", err)
	}
	if !resources.Owns(r.seen.Cluster, live) {
		return fmt.Errorf("PodDisruptionBudget %s exists: %w", want.Name, reconcile.ErrNotOwned)
	}
	repaired, drifted := resources.PodDisruptionBudgetDrift(r.seen.Cluster, a.Voters, live)
	if !drifted {
		return nil
	}
	updated, err := r.Objects.UpdatePodDisruptionBudget(ctx, repaired)
	if err != nil {
		return reconcile.StaleOnConflict(err)
	}
	r.Gate.Note(r.key, updated)
	return nil
}

// deleteBudget deletes the pod disruption budget.
func deleteBudget(ctx context.Context, r *run, _ planner.DeletePodDisruptionBudget) error {
	live, err := r.Objects.GetPodDisruptionBudget(ctx, r.seen.Cluster.Namespace, r.seen.Cluster.Name)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the PodDisruptionBudget: %w", err)
	}
	if !resources.Owns(r.seen.Cluster, live) {
		return nil
	}
	err = r.Objects.DeletePodDisruptionBudget(ctx, live.Namespace, live.Name, metav1.Preconditions{UID: &live.UID})
	if isNotFound(err) {
		return nil
	}
	return reconcile.StaleOnConflict(err)
}
