// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// confirmRestart makes sure, in the live API, that the cluster still is declared as it
// was observed, and that nobody else is about to go while a member restarts.
func (r *Reconciler) confirmRestart(ctx context.Context, s *seen, name string, waiting bool) error {
	if err := r.confirmSpec(ctx, s); err != nil {
		return err
	}
	if waiting {
		return r.confirmSilent(ctx, s, name) // then nobody need take its place
	}
	return r.confirmOthers(ctx, s, name)
}

// confirmSilent makes sure that a member does not serve whose container does not run:
// Kubernetes may say seconds late that it was started again.
func (r *Reconciler) confirmSilent(ctx context.Context, s *seen, name string) error {
	pod, err := r.Objects.GetPod(ctx, s.Cluster.Namespace, name)
	if notFound(err) {
		return fmt.Errorf("pod %s is gone: %w", name, ErrStale)
	}
	if err != nil {
		return fmt.Errorf("read pod %s: %w", name, err)
	}
	if pod.Status.PodIP == "" || !s.secure() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	target := s.to(endpointOf(s.Cluster, pod))
	if answer, asked := r.Etcd.Statuses(ctx, target)[name]; asked && answer.Err == nil {
		return fmt.Errorf("member %s answers: %w", name, ErrStale)
	}
	return nil
}

// upgradePod gives the pod the image of the wanted version. The container restarts
// in place, on the same data.
func (r *Reconciler) upgradePod(ctx context.Context, key types.NamespacedName, s *seen, a planner.UpgradePod) error {
	if err := r.confirmRestart(ctx, s, a.Name, a.Waiting); err != nil {
		return err
	}
	if err := r.markClaim(ctx, key, s, a.Name, resources.Version(s.Cluster)); err != nil {
		return err
	}
	before, done := "", false
	err := r.changePod(ctx, key, s, a.Name, a.UID, func(live *corev1.Pod) (*corev1.Pod, bool) {
		pod := observedPod(s.Cluster, live)
		before = pod.Version
		if a.Waiting && pod.Running {
			return live, false
		}
		changed, differs := resources.WithVersion(s.Cluster, live)
		done = differs
		return changed, differs
	})
	if err != nil || !done {
		return err
	}
	r.announceRestart(s, a.Name, before, a.Version, a.Outage)
	return nil
}

// recreatePod deletes the pod of a member that has a volume; it is made again when it
// is gone.
func (r *Reconciler) recreatePod(ctx context.Context, key types.NamespacedName, s *seen, a planner.RecreatePod) error {
	if err := r.confirmRestart(ctx, s, a.Name, a.Waiting); err != nil {
		return err
	}
	if err := r.confirmClaim(ctx, s, a.Name); err != nil {
		return err
	}
	live, err := r.ownPod(ctx, s, a.Name, a.UID)
	if err != nil || live == nil {
		return err
	}
	pod := observedPod(s.Cluster, live)
	if a.Waiting && pod.Running {
		return fmt.Errorf("pod %s runs: %w", a.Name, ErrStale)
	}
	if a.Version != "" {
		if err := r.markClaim(ctx, key, s, a.Name, a.Version); err != nil {
			return err
		}
	}
	only := metav1.Preconditions{UID: &live.UID}
	if a.Waiting {
		only.ResourceVersion = &live.ResourceVersion
	}
	if err := r.Objects.DeletePod(ctx, live.Namespace, live.Name, only); err != nil && !notFound(err) {
		return conflictIsStale(err)
	}
	r.announceRestart(s, a.Name, pod.Version, a.Version, a.Outage)
	return nil
}

// announceRestart records what happens to a member, and what that costs.
func (r *Reconciler) announceRestart(s *seen, name, before, version string, outage bool) {
	reason, what := EventMemberRestarted, "Member "+name+" restarts as it is declared"
	if before != version {
		reason, what = EventMemberUpgraded, "Member "+name+" restarts with version "+version
	}
	if !outage {
		r.normal(s, reason, "%s", what)
		return
	}
	r.warning(s, reason, "%s; the cluster is too small to serve meanwhile", what)
}

// markClaim notes on the volume of a member which version will run on it, before one
// does: the pod that says so too may be lost, and what is on a volume that a version
// has seen must not be given to an older one.
func (r *Reconciler) markClaim(ctx context.Context, key types.NamespacedName, s *seen, name, version string) error {
	if resources.Claim(s.Cluster, name) == nil {
		return nil // the members of this cluster have no volumes
	}
	live, err := r.Objects.GetClaim(ctx, s.Cluster.Namespace, name)
	if notFound(err) || (err == nil && !resources.Owns(s.Cluster, live)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read claim %s: %w", name, err)
	}
	if live.Annotations[resources.AnnotationVersion] == version {
		return nil
	}
	claim := live.DeepCopy()
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, resources.AnnotationVersion, version)
	return r.writeClaim(ctx, key, claim)
}
