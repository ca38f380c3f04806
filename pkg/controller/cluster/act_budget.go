// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// ensureBudget makes the pod disruption budget or brings it up to date.
func ensureBudget(ctx context.Context, r *run, a planner.EnsurePodDisruptionBudget) error {
	return putBudget(ctx, r, resources.PodDisruptionBudget(r.seen.Cluster, a.MinAvailable))
}

// guardRecoveryMember makes the budget of the recovery member or brings it up to date.
func guardRecoveryMember(ctx context.Context, r *run, _ planner.GuardRecoveryMember) error {
	if r.seen.Cluster.Spec.PodDisruptionBudget == v1beta2.PodDisruptionBudgetDisabled {
		return nil
	}
	return putBudget(ctx, r, resources.RecoveryBudget(r.seen.Cluster))
}

func putBudget(ctx context.Context, r *run, want *policyv1.PodDisruptionBudget) error {
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
		return fmt.Errorf("read PodDisruptionBudget %s: %w", want.Name, err)
	}
	if !resources.Owns(r.seen.Cluster, live) {
		return fmt.Errorf("PodDisruptionBudget %s exists: %w", want.Name, reconcile.ErrNotOwned)
	}
	repaired, drifted := resources.BudgetDrift(r.seen.Cluster, live, want)
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

// guardVoters makes sure that a voter may stop: first no eviction is allowed any longer that would
// stop another voter as well, then the other voters still serve and stay. The order matters. Evictions
// are rejected from the moment in which the budget is raised, before Kubernetes has counted
// again. An eviction from before is a pod that goes away. The planner lowers the budget afterwards. The list of members
// has left voters after the step.
func guardVoters(ctx context.Context, r *run, name string, left int) error {
	// A pod that is not ready is not counted, so nothing changes when it stops.
	if pod := r.seen.podOf(name); pod != nil && pod.Ready {
		if err := raiseBudget(ctx, r); err != nil {
			return fmt.Errorf("raise the PodDisruptionBudget before member %s stops: %w", name, err)
		}
	}
	return requireOtherVotersServe(ctx, r, name, left)
}

// requireOtherVotersStay makes sure that the pods of the voters that serve are not about to be
// deleted, before a voter that could also stay is removed or restarted. The cache may lag behind,
// and a member serves until its container ends. Another controller that is about to stop a member has
// drained its pod before. So of two controllers that each drain one and then look at the others, at most
// one goes on; see requireStillDrained. A pod that was observed as about to end counts for no step: two members whose
// nodes end no pod would otherwise keep each other. A drained pod that stops ends no quorum if goesBesideDrained is true.
func requireOtherVotersStay(ctx context.Context, r *run, except string, left int) error {
	stay := 0
	var drained []string
	for i := range r.seen.Etcd.Members {
		m := &r.seen.Etcd.Members[i]
		if m.Learner || m.Unmanaged || m.Name == except || m.Health != planner.Healthy {
			continue
		}
		if p := r.seen.podOf(m.Name); p != nil && p.Terminating {
			continue
		}
		pod, err := requirePodStays(ctx, r, m.Name)
		if err != nil {
			return err
		}
		if except != "" && pod.Role == planner.PodDraining {
			drained = append(drained, m.Name)
			continue
		}
		stay++
	}
	if len(drained) == 0 || r.seen.goesBesideDrained(except, drained, stay, left) {
		return nil
	}
	return fmt.Errorf("pod %s was drained and may stop: %w", drained[0], reconcile.ErrStale)
}

// goesBesideDrained is true for a voter that does not serve, if the voters that stay are a quorum without the drained ones, too.
// The planner may not give a drained pod back to its clients: while a voter does not serve, any write may restart
// that pod (see mayRestartBesideOthers). Each of the two would wait for the other.
func (s *seen) goesBesideDrained(name string, drained []string, stay, left int) bool {
	observed := func(d string) bool { p := s.podOf(d); return p != nil && p.Role == planner.PodDraining }
	return !s.isHealthy(name) && stay >= diagnosis.Quorum(left) && !slices.ContainsFunc(drained, func(d string) bool { return !observed(d) })
}

// countVoters is how many voters the observed list has.
func (s *seen) countVoters() int {
	n := 0
	for i := range s.Etcd.Members {
		if !s.Etcd.Members[i].Learner {
			n++
		}
	}
	return n
}

// requireStillDrained makes sure that a pod that was seen as drained still is. Another controller gives it
// back to the Service before it drains and stops another pod.
func requireStillDrained(r *run, live *corev1.Pod) error {
	seen := r.seen.podOf(live.Name)
	if seen != nil && seen.Role == planner.PodDraining && observedPod(r.seen.Cluster, live).Role != planner.PodDraining {
		return fmt.Errorf("pod %s is not drained any more: %w", live.Name, reconcile.ErrStale)
	}
	return nil
}

// raiseBudget has the budget keep one voter more than a quorum. A budget that is missing or is not
// owned stays as it is: the status says so.
func raiseBudget(ctx context.Context, r *run) error {
	if r.seen.Cluster.Spec.PodDisruptionBudget == v1beta2.PodDisruptionBudgetDisabled {
		return nil
	}
	voters := max(r.seen.countVoters(), int(ptr.Deref(r.seen.Cluster.Spec.Replicas, 0)))
	keep := min(diagnosis.Quorum(voters)+1, voters)
	live, err := r.Objects.GetPodDisruptionBudget(ctx, r.seen.Cluster.Namespace, r.seen.Cluster.Name)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !resources.Owns(r.seen.Cluster, live) || minAvailable(live) >= keep {
		return nil
	}
	raised, _ := resources.BudgetDrift(r.seen.Cluster, live, resources.PodDisruptionBudget(r.seen.Cluster, keep))
	updated, err := r.Objects.UpdatePodDisruptionBudget(ctx, raised)
	if err != nil {
		return reconcile.StaleOnConflict(err)
	}
	r.Gate.Note(r.key, updated)
	return nil
}

// deleteBudget deletes the pod disruption budget.
func deleteBudget(ctx context.Context, r *run, _ planner.DeletePodDisruptionBudget) error {
	return dropBudget(ctx, r, r.seen.Cluster.Name)
}

// unguardRecoveryMember deletes the budget of the recovery member.
func unguardRecoveryMember(ctx context.Context, r *run, _ planner.UnguardRecoveryMember) error {
	return dropBudget(ctx, r, resources.RecoveryBudgetName(r.seen.Cluster.Name))
}

func dropBudget(ctx context.Context, r *run, name string) error {
	live, err := r.Objects.GetPodDisruptionBudget(ctx, r.seen.Cluster.Namespace, name)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read PodDisruptionBudget %s: %w", name, err)
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
