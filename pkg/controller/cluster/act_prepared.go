// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// preparePod makes a pod that waits for its member. A pod of that name that exists is the
// one of an earlier attempt whose response was lost; the cache shows it soon.
func (r *Reconciler) preparePod(ctx context.Context, key types.NamespacedName, s *seen, a planner.PreparePod) error {
	if a.NewClaim {
		if claim := resources.PreparedClaim(s.Cluster, a.Name); claim != nil {
			if err := r.putClaim(ctx, key, s, claim, a.Version); err != nil {
				return err
			}
		}
	}
	if err := r.markClaim(ctx, key, s, a.Name, resources.Version(atVersion(s.Cluster, a.Version))); err != nil {
		return err
	}
	m := s.certified(resources.MemberPod{Name: a.Name, Learner: true, Prepared: true, Image: r.AgentImage})
	c := atVersion(s.Cluster, a.Version)
	created, err := r.Objects.CreatePod(ctx, r.Platform.Member(c, resources.Pod(c, m)))
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("pod %s exists: %w", a.Name, ErrStale)
	}
	if err != nil {
		return notMade(err)
	}
	r.Gate.Note(key, created)
	return nil
}

// confirmWaits makes sure, in the live API, that the pod of a member that is about to be
// added waits for it, and that no member has ever used it: a cache that is behind may show
// a pod as it was before another member started in it.
func (r *Reconciler) confirmWaits(ctx context.Context, s *seen, a planner.AddMember) error {
	live, err := r.ownPod(ctx, s, a.Name, a.UID)
	if err != nil {
		return err
	}
	if live == nil {
		return fmt.Errorf("pod %s no longer exists: %w", a.Name, ErrStale)
	}
	if resources.IsPrepared(live.Annotations) == a.Admitted {
		return fmt.Errorf("pod %s changed since it was observed: %w", a.Name, ErrStale)
	}
	if o := observedPod(s.Cluster, live); !a.Admitted && (o.Finished || !o.Running) {
		return fmt.Errorf("pod %s does not run: %w", a.Name, ErrStale)
	}
	return nil
}

// admitPod lets etcd start in a prepared pod. The PVC goes first: with its pod admitted it
// is one of a member.
func (r *Reconciler) admitPod(ctx context.Context, key types.NamespacedName, s *seen, a planner.AdmitPod) error {
	if resources.Claim(s.Cluster, a.Name) != nil {
		live, err := r.Objects.GetClaim(ctx, s.Cluster.Namespace, a.Name)
		if notFound(err) {
			return fmt.Errorf("PVC %s no longer exists: %w", a.Name, ErrStale)
		}
		if err != nil {
			return fmt.Errorf("read PVC %s: %w", a.Name, err)
		}
		if !resources.Owns(s.Cluster, live) || live.DeletionTimestamp != nil {
			return fmt.Errorf("PVC %s is being deleted: %w", a.Name, ErrStale)
		}
		if claim, differs := resources.AdmittedClaim(live); differs {
			if err := r.writeClaim(ctx, key, claim); err != nil {
				return err
			}
		}
	}
	live, err := r.ownPod(ctx, s, a.Name, a.UID)
	if err != nil {
		return err
	}
	if live == nil {
		return fmt.Errorf("pod %s no longer exists: %w", a.Name, ErrStale)
	}
	pod, differs := resources.Admitted(live, peers(s, a.Peers))
	if !differs {
		return nil
	}
	if err := r.writePod(ctx, key, pod); err != nil {
		return err
	}
	// The pod runs already: etcd in it is the next thing that will respond there.
	r.Waker.Await(key, s.to(), endpointOf(s.Cluster, pod))
	return nil
}

// isPrepared is true if the observation shows the pod with this UID as a prepared one.
func (s *seen) isPrepared(uid string) bool {
	return slices.ContainsFunc(s.Prepared, func(p planner.Pod) bool { return p.UID == uid })
}
