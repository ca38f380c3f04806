// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// repairClaim gives a claim the owner and the size that are declared. The spec is
// confirmed first: an owner that a user has just taken from a claim would, put back, take
// the volume along when the cluster is deleted.
func (r *Reconciler) repairClaim(ctx context.Context, key types.NamespacedName, s *seen, a planner.RepairClaim) error {
	if err := r.confirmSpec(ctx, s); err != nil {
		return err
	}
	live, err := r.ownClaim(ctx, s, a.Name, a.UID)
	if err != nil || live == nil {
		return err
	}
	claim, drifted := resources.ClaimDrift(s.Cluster, live)
	if growth, _ := resources.ClaimGrowth(s.Cluster, live); growth != resources.GrowthDue {
		if !drifted {
			return nil
		}
		return r.writeClaim(ctx, key, claim)
	}
	err = r.writeClaim(ctx, key, resources.GrownClaim(s.Cluster, claim))
	switch {
	case err == nil:
		r.normal(s, EventVolumeGrows, "The volume of member %s was asked to grow as it is declared", a.Name)
		return nil
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		// Noted where the next observation finds it, so that it is not asked for each time.
		if noted := r.writeClaim(ctx, key, resources.GrowthRefusedClaim(s.Cluster, claim, err.Error())); noted != nil {
			return fmt.Errorf("%w; then: %w", err, noted)
		}
		r.warning(s, EventGrowthRefused, "The volume of member %s may not grow as it is declared: %v", a.Name, err)
		return nil
	default:
		return err
	}
}

func (r *Reconciler) createClaim(ctx context.Context, key types.NamespacedName, s *seen, a planner.CreateClaim) error {
	claim := resources.Claim(s.Cluster, a.Name)
	if claim == nil {
		return nil
	}
	return r.putClaim(ctx, key, s, claim, "")
}

// putClaim makes a claim for a member that will run a version; empty for the declared one.
func (r *Reconciler) putClaim(ctx context.Context, key types.NamespacedName, s *seen, claim *corev1.PersistentVolumeClaim, version string) error {
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, resources.AnnotationVersion, resources.Version(atVersion(s.Cluster, version)))
	created, err := r.Objects.CreateClaim(ctx, claim)
	if apierrors.IsAlreadyExists(err) {
		live, getErr := r.Objects.GetClaim(ctx, s.Cluster.Namespace, claim.Name)
		if getErr != nil {
			return fmt.Errorf("read claim %s: %w", claim.Name, getErr)
		}
		return r.showClaim(ctx, key, s, live)
	}
	if err != nil {
		return notMade(err)
	}
	r.Gate.Note(key, created)
	return nil
}
