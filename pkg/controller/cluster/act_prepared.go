// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// preparePod makes a pod that waits for its member. A pod of that name that exists is the
// one of an earlier attempt whose response was lost, and the cache shows it soon, or one that
// has lost its labels.
func preparePod(ctx context.Context, r *run, a planner.PreparePod) error {
	if a.CreatePVC {
		if pvc := resources.PreparedPVC(r.seen.Cluster, a.Name); pvc != nil {
			if err := createPVC(ctx, r, pvc, a.Version); err != nil {
				return err
			}
		}
	} else if err := requirePreparedPVC(ctx, r, a.Name); err != nil {
		return err
	}
	if err := recordVersion(ctx, r, a.Name, resources.Version(atVersion(r.seen.Cluster, a.Version))); err != nil {
		return err
	}
	m := r.seen.certified(resources.MemberPod{Name: a.Name, Learner: true, Prepared: true, Image: r.AgentImage, NoticeKey: r.noticeKey()})
	c := atVersion(r.seen.Cluster, a.Version)
	err := submitPod(ctx, r, r.Platform.Member(c, resources.Pod(c, m)))
	if apierrors.IsAlreadyExists(err) {
		live, err := r.Objects.GetPod(ctx, r.seen.Cluster.Namespace, a.Name)
		if err != nil {
			return fmt.Errorf("read pod %s: %w", a.Name, err)
		}
		return restorePodLabels(ctx, r, live)
	}
	return reconcile.MarkRejected(err)
}

// requirePreparedPVC makes sure, in the live API, that the PVC of a pod that is made again still waits for
// its membership: the cache may be from before its member was admitted.
func requirePreparedPVC(ctx context.Context, r *run, name string) error {
	if resources.PVC(r.seen.Cluster, name) == nil {
		return nil
	}
	live, err := r.Objects.GetPVC(ctx, r.seen.Cluster.Namespace, name)
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("read PVC %s: %w", name, err)
	}
	if err != nil || !resources.Owns(r.seen.Cluster, live) || !r.seen.isPrepared(live) {
		return fmt.Errorf("PVC %s does not wait for its membership: %w", name, reconcile.ErrStale)
	}
	return nil
}

// requireUnusedPod makes sure, in the live API, that the pod of a new member waits for it
// and was never used. A cache that lags behind may show a pod as it was before another
// member started in it.
func requireUnusedPod(ctx context.Context, r *run, a planner.AddMember) error {
	live, err := readOwnedPod(ctx, r, a.Name, a.UID)
	if err != nil {
		return err
	}
	if live == nil {
		return fmt.Errorf("pod %s no longer exists: %w", a.Name, reconcile.ErrStale)
	}
	if r.seen.isPrepared(live) == a.Admitted {
		return fmt.Errorf("pod %s changed since it was observed: %w", a.Name, reconcile.ErrStale)
	}
	if o := observedPod(r.seen.Cluster, live); !a.Admitted && (o.Finished || !o.Running) {
		return fmt.Errorf("pod %s does not run: %w", a.Name, reconcile.ErrStale)
	}
	return nil
}

// admitPod lets etcd start in a prepared pod. The PVC goes first: with its pod admitted it
// is one of a member.
func admitPod(ctx context.Context, r *run, a planner.AdmitPod) error {
	if resources.PVC(r.seen.Cluster, a.Name) != nil {
		live, err := r.Objects.GetPVC(ctx, r.seen.Cluster.Namespace, a.Name)
		if isNotFound(err) {
			return fmt.Errorf("PVC %s no longer exists: %w", a.Name, reconcile.ErrStale)
		}
		if err != nil {
			return fmt.Errorf("read PVC %s: %w", a.Name, err)
		}
		if !resources.Owns(r.seen.Cluster, live) || live.DeletionTimestamp != nil {
			return fmt.Errorf("PVC %s is being deleted: %w", a.Name, reconcile.ErrStale)
		}
		if pvc, differs := resources.AdmittedPVC(live, a.SecondVoter); differs {
			if err := updatePVC(ctx, r, pvc); err != nil {
				return err
			}
		}
	}
	live, err := readOwnedPod(ctx, r, a.Name, a.UID)
	if err != nil {
		return err
	}
	if live == nil {
		return fmt.Errorf("pod %s no longer exists: %w", a.Name, reconcile.ErrStale)
	}
	pod, differs := resources.Admitted(live, peers(r.seen, a.Peers))
	if !differs {
		return nil
	}
	if err := updatePod(ctx, r, live, pod); err != nil {
		return err
	}
	if r.Launchers != nil && !a.SecondVoter { // the second voter of an old etcd is not a member yet
		r.Launchers.Tell(ctx, pod, pod.Annotations[resources.AnnotationInitialCluster])
	}
	// The pod runs already: etcd in it is the next thing that will respond there.
	r.Waker.Await(r.key, r.seen.to(), endpointOf(r.seen.Cluster, pod))
	return nil
}

// noticeKey is the key that a prepared pod gets; empty if its launcher gets no notices.
func (r *Reconciler) noticeKey() string {
	if r.Launchers == nil {
		return ""
	}
	return r.Launchers.Key()
}

// isPrepared is true for a live pod or PVC that no member has used: its annotation says so, and nothing that was
// observed says that its member has started; see planner.HasStarted.
func (s *seen) isPrepared(live metav1.Object) bool {
	return resources.IsPrepared(live.GetAnnotations()) && !planner.HasStarted(&s.Observed, live.GetName())
}

// showsPrepared is true if the observation shows the pod with this UID as a prepared one.
func (s *seen) showsPrepared(uid string) bool {
	return slices.ContainsFunc(s.Prepared, func(p planner.Pod) bool { return p.UID == uid })
}
