// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// ensureBudget makes the pod disruption budget or brings it up to date.
func (r *Reconciler) ensureBudget(ctx context.Context, key types.NamespacedName, s *seen, voters int) error {
	want := resources.PodDisruptionBudget(s.Cluster, voters)
	created, err := r.Objects.CreatePodDisruptionBudget(ctx, want)
	if err == nil {
		r.Gate.Note(key, created)
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	live, err := r.Objects.GetPodDisruptionBudget(ctx, want.Namespace, want.Name)
	if err != nil {
		return fmt.Errorf("read the pod disruption budget: %w", err)
	}
	if !resources.Owns(s.Cluster, live) {
		return fmt.Errorf("pod disruption budget %s exists: %w", want.Name, errNotOurs)
	}
	repaired, drifted := resources.PodDisruptionBudgetDrift(s.Cluster, voters, live)
	if !drifted {
		return nil
	}
	updated, err := r.Objects.UpdatePodDisruptionBudget(ctx, repaired)
	if err != nil {
		return conflictIsStale(err)
	}
	r.Gate.Note(key, updated)
	return nil
}

func (r *Reconciler) deleteBudget(ctx context.Context, s *seen) error {
	live, err := r.Objects.GetPodDisruptionBudget(ctx, s.Cluster.Namespace, s.Cluster.Name)
	if notFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the pod disruption budget: %w", err)
	}
	if !resources.Owns(s.Cluster, live) {
		return nil
	}
	err = r.Objects.DeletePodDisruptionBudget(ctx, live.Namespace, live.Name, metav1.Preconditions{UID: &live.UID})
	if notFound(err) {
		return nil
	}
	return conflictIsStale(err)
}
