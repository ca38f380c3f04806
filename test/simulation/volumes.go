// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// growthTakes is how long a volume takes to become larger.
const growthTakes = 5 * time.Second

var errNoExpansion = errors.New("the storage class does not allow it")

// volumeEvents let volumes be declared larger, and kept or deleted with the cluster, now
// and then. They are drawn apart from the others, so that schedules without them stay
// what they were.
func volumeEvents(s *Schedule) {
	d := newDice(s.Seed, 5)
	if !s.Volumes || !d.chance(50) {
		return
	}
	s.Expandable = d.chance(60)
	for range 1 + d.IntN(3) {
		s.Events = append(s.Events, Event{
			At: d.between(0, 6*time.Minute), Kind: pick(d, EventGrow, EventRetention), A: d.IntN(1 << 16), B: d.IntN(1 << 16),
		})
	}
}

func gibibytes(n int) resource.Quantity { return resource.MustParse(fmt.Sprintf("%dGi", n)) }

// sized declares volumes of a size. Validation does not let them shrink.
func sized(s *v1beta2.ClusterSpec, size resource.Quantity) {
	if s.Pod != nil && s.Pod.PersistentVolumeClaimSpec != nil {
		s.Pod.PersistentVolumeClaimSpec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: size}
	}
}

// kept declares whether volumes outlive the cluster.
func kept(s *v1beta2.ClusterSpec, keep bool) {
	if s.Pod == nil || s.Pod.PersistentVolumeClaimRetentionPolicy == nil {
		return
	}
	s.Pod.PersistentVolumeClaimRetentionPolicy.WhenDeleted = v1beta2.ClaimDelete
	if keep {
		s.Pod.PersistentVolumeClaimRetentionPolicy.WhenDeleted = v1beta2.ClaimRetain
	}
}

// bound makes a new claim one with a volume.
func bound(claim claimObject) {
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.Capacity = claim.Spec.Resources.Requests.DeepCopy()
}

// updateClaim is what the API makes of a changed claim.
func updateClaim(s *store, claim claimObject) (claimObject, error) {
	old, err := get[claimObject](s, kindClaim, claim.Name)
	if err != nil {
		return nil, err
	}
	was, is := old.Spec.Resources.Requests[corev1.ResourceStorage], claim.Spec.Resources.Requests[corev1.ResourceStorage]
	switch {
	case is.Cmp(was) == 0:
		return update(s, claim)
	case is.Cmp(was) < 0, !s.w.plan.Expandable:
		return nil, apierrors.NewForbidden(kindClaim.resource(), claim.Name, errNoExpansion)
	}
	updated, err := update(s, claim)
	if err == nil {
		s.w.after(growthTakes, func() {
			edit(s, kindClaim, claim.Name, func(c claimObject) {
				if c.UID == updated.UID {
					c.Status.Capacity = updated.Spec.Resources.Requests.DeepCopy()
				}
			})
		})
	}
	return updated, err
}

// goalVolumes: volumes have the owner and the size that are declared, or the status says
// why not.
func (w *World) goalVolumes(cluster *v1beta2.EtcdCluster, _ *lineage) string {
	refused := false
	for _, object := range w.store.list(kindClaim) {
		claim := object.(claimObject)
		if claim.Labels[resources.LabelApp] == "" || claim.DeletionTimestamp != nil || !resources.Owns(cluster, claim) {
			continue
		}
		if _, drifted := resources.ClaimDrift(cluster, claim); drifted {
			return "claim " + claim.Name + " is not as declared"
		}
		growth, _ := resources.ClaimGrowth(cluster, claim)
		if growth != resources.GrownEnough && (growth != resources.GrowthRefused || w.plan.Expandable) {
			return "the volume of claim " + claim.Name + " has not grown"
		}
		refused = refused || growth == resources.GrowthRefused
	}
	want := corev1.ConditionTrue
	if refused {
		want = corev1.ConditionFalse
	}
	if w.plan.Volumes && !conditionIs(cluster, v1beta2.ClusterConditionVolumesAsDeclared, want) {
		return "the status does not say whether the volumes are as declared"
	}
	return ""
}
