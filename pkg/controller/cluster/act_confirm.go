// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// The functions here look once more, in the live API, before something that cannot be
// taken back. Decisions are made from caches, which may be behind; another process may
// act on the same cluster. They return ErrStale if what was observed is no longer so.

// confirmUnborn makes sure, in the live API, that the cluster still is the one that
// was observed, that it has never served, and that nothing but its seed exists.
func (r *Reconciler) confirmUnborn(ctx context.Context, s *seen, seed string) error {
	live, err := r.Objects.GetCluster(ctx, s.Cluster.Namespace, s.Cluster.Name)
	if notFound(err) {
		return fmt.Errorf("the cluster was deleted: %w", ErrStale)
	}
	if err != nil {
		return fmt.Errorf("read the cluster: %w", err)
	}
	if live.UID != s.Cluster.UID || live.DeletionTimestamp != nil {
		return fmt.Errorf("the cluster is another one now: %w", ErrStale)
	}
	if live.Status.Phase != v1beta2.ClusterPhaseNone && live.Status.Phase != v1beta2.ClusterPhaseCreating {
		return fmt.Errorf("the cluster has served before: %w", ErrStale)
	}
	// The status is written after clients were let in, so it alone proves nothing.
	service, err := r.Objects.GetService(ctx, s.Cluster.Namespace, resources.ClientServiceName(s.Cluster))
	if err == nil && !resources.Owns(s.Cluster, service) {
		return fmt.Errorf("service %s exists: %w", service.Name, errNotOurs)
	}
	if err == nil {
		// The cache does not show it if something has removed its labels.
		if err := r.repairService(ctx, types.NamespacedName{Namespace: live.Namespace, Name: live.Name}, s, service, resources.ClientServiceDrift); err != nil {
			return err
		}
		return fmt.Errorf("the service for clients exists: %w", ErrStale)
	}
	if !notFound(err) {
		return fmt.Errorf("read the service for clients: %w", err)
	}
	return r.confirmAlone(ctx, s, seed)
}

// confirmAlone makes sure that the cluster has no pod and no volume besides those of
// its seed.
func (r *Reconciler) confirmAlone(ctx context.Context, s *seen, seed string) error {
	pods, err := r.Objects.ListPods(ctx, s.Cluster.Namespace, s.Cluster.Name)
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	for i := range pods {
		if pods[i].Name != seed && !resources.IsPrepared(pods[i].Annotations) && metav1.IsControlledBy(&pods[i], s.Cluster) {
			return fmt.Errorf("pod %s exists: %w", pods[i].Name, ErrStale)
		}
	}
	claims, err := r.Objects.ListClaims(ctx, s.Cluster.Namespace, s.Cluster.Name)
	if err != nil {
		return fmt.Errorf("list the claims: %w", err)
	}
	for i := range claims {
		if claims[i].Name != seed && !resources.IsPrepared(claims[i].Annotations) && resources.Owns(s.Cluster, &claims[i]) {
			return fmt.Errorf("claim %s exists: %w", claims[i].Name, ErrStale)
		}
	}
	return nil
}

// confirmSeed makes sure, in the live API, that the record names this seed and that
// the cluster has never served.
func (r *Reconciler) confirmSeed(ctx context.Context, s *seen, name string) error {
	record, err := r.Objects.GetService(ctx, s.Cluster.Namespace, s.Cluster.Name)
	if err != nil {
		return fmt.Errorf("read the record of the bootstrap: %w", err)
	}
	if !resources.Owns(s.Cluster, record) || record.Annotations[resources.AnnotationSeed] != name ||
		record.Annotations[resources.AnnotationClusterID] != "" {
		return fmt.Errorf("the record names another seed or a finished bootstrap: %w", ErrStale)
	}
	return r.confirmUnborn(ctx, s, name)
}

func (r *Reconciler) confirmLost(ctx context.Context, key types.NamespacedName, s *seen, name string) error {
	if err := r.confirmNoPod(ctx, key, s, name); err != nil {
		return err
	}
	return r.confirmNoClaim(ctx, key, s, name)
}

// confirmEnded makes sure that no member runs in a pod that is about to go.
func (r *Reconciler) confirmEnded(ctx context.Context, s *seen, name string) error {
	pod, err := r.Objects.GetPod(ctx, s.Cluster.Namespace, name)
	if notFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read pod %s: %w", name, err)
	}
	if live := observedPod(s.Cluster, pod); live.Owned && !live.Finished {
		return fmt.Errorf("pod %s has not ended: %w", name, ErrStale)
	}
	return nil
}

// confirmNoPod makes sure that a pod that was not seen is not there either, and that it has
// not only lost its labels.
func (r *Reconciler) confirmNoPod(ctx context.Context, key types.NamespacedName, s *seen, name string) error {
	pod, err := r.Objects.GetPod(ctx, s.Cluster.Namespace, name)
	if notFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read pod %s: %w", name, err)
	}
	live := observedPod(s.Cluster, pod)
	if live.Owned && !live.Terminating && !live.Finished {
		if resources.IsPrepared(pod.Annotations) && s.isPrepared(string(pod.UID)) {
			return nil // no member has used it
		}
		if err := r.showPod(ctx, key, s, pod); err != nil {
			return err
		}
		return fmt.Errorf("pod %s exists: %w", name, ErrStale)
	}
	return nil
}

// confirmNoClaim makes sure that the data is gone with the pod.
func (r *Reconciler) confirmNoClaim(ctx context.Context, key types.NamespacedName, s *seen, name string) error {
	claim, err := r.Objects.GetClaim(ctx, s.Cluster.Namespace, name)
	if notFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read claim %s: %w", name, err)
	}
	if claim.DeletionTimestamp == nil && resources.Owns(s.Cluster, claim) && !resources.IsPrepared(claim.Annotations) {
		if err := r.showClaim(ctx, key, s, claim); err != nil {
			return err
		}
		return fmt.Errorf("claim %s exists: %w", name, ErrStale)
	}
	return nil
}

// confirmOthers makes sure that the pods of the voters that serve are not going away,
// before one that need not go is removed or restarted. The cache may be behind, and a
// member serves until the very end.
func (r *Reconciler) confirmOthers(ctx context.Context, s *seen, except string) error {
	for i := range s.Etcd.Members {
		m := &s.Etcd.Members[i]
		if m.Learner || m.Name == except || m.Health != planner.Healthy {
			continue
		}
		if err := r.confirmStays(ctx, s, m.Name); err != nil {
			return err
		}
	}
	return nil
}

// confirmStays makes sure that the pod of a member is not going away, and that its
// container is not about to restart.
func (r *Reconciler) confirmStays(ctx context.Context, s *seen, name string) error {
	pod, err := r.Objects.GetPod(ctx, s.Cluster.Namespace, name)
	if notFound(err) {
		return fmt.Errorf("pod %s is gone: %w", name, ErrStale)
	}
	if err != nil {
		return fmt.Errorf("read pod %s: %w", name, err)
	}
	live := observedPod(s.Cluster, pod)
	if !live.Owned || live.Terminating || live.Finished {
		return fmt.Errorf("pod %s goes away: %w", name, ErrStale)
	}
	if live.Restarting {
		return fmt.Errorf("pod %s restarts: %w", name, ErrStale)
	}
	return nil
}

// confirmDown makes sure that the container of a member does not run.
func (r *Reconciler) confirmDown(ctx context.Context, s *seen, name string) error {
	pod, err := r.Objects.GetPod(ctx, s.Cluster.Namespace, name)
	if notFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read pod %s: %w", name, err)
	}
	if observedPod(s.Cluster, pod).Running {
		return fmt.Errorf("pod %s runs: %w", name, ErrStale)
	}
	return nil
}

// confirmClaim makes sure that the volume of a member outlives its pod.
func (r *Reconciler) confirmClaim(ctx context.Context, s *seen, name string) error {
	claim, err := r.Objects.GetClaim(ctx, s.Cluster.Namespace, name)
	if notFound(err) {
		return fmt.Errorf("claim %s is gone: %w", name, ErrStale)
	}
	if err != nil {
		return fmt.Errorf("read claim %s: %w", name, err)
	}
	if claim.DeletionTimestamp != nil || !resources.Owns(s.Cluster, claim) {
		return fmt.Errorf("claim %s goes away: %w", name, ErrStale)
	}
	return nil
}

// confirmStatus makes sure that the status is the last one that was written: it is the proof
// of who votes.
func (r *Reconciler) confirmStatus(ctx context.Context, s *seen) error {
	live, err := r.Objects.GetCluster(ctx, s.Cluster.Namespace, s.Cluster.Name)
	if notFound(err) {
		return fmt.Errorf("the cluster was deleted: %w", ErrStale)
	}
	if err != nil {
		return fmt.Errorf("read the cluster: %w", err)
	}
	if live.UID != s.Cluster.UID || live.ResourceVersion != s.Cluster.ResourceVersion {
		return fmt.Errorf("the status of the cluster is another one now: %w", ErrStale)
	}
	return nil
}

// confirmGone makes sure that the hidden seed of a recovery has neither a pod nor a volume.
func (r *Reconciler) confirmGone(ctx context.Context, s *seen, name string) error {
	if _, err := r.Objects.GetPod(ctx, s.Cluster.Namespace, name); !notFound(err) {
		return stillThere("pod", name, err)
	}
	if _, err := r.Objects.GetClaim(ctx, s.Cluster.Namespace, name); !notFound(err) {
		return stillThere("claim", name, err)
	}
	return nil
}

func stillThere(kind, name string, err error) error {
	if err != nil {
		return fmt.Errorf("read %s %s: %w", kind, name, err)
	}
	return fmt.Errorf("%s %s exists: %w", kind, name, ErrStale)
}

// confirmSpec makes sure that the cluster still is as it was observed to be declared,
// before something is done that is only right for this spec: a cache that is behind
// must not undo what a user has asked for since.
func (r *Reconciler) confirmSpec(ctx context.Context, s *seen) error {
	live, err := r.Objects.GetCluster(ctx, s.Cluster.Namespace, s.Cluster.Name)
	if notFound(err) {
		return fmt.Errorf("the cluster was deleted: %w", ErrStale)
	}
	if err != nil {
		return fmt.Errorf("read the cluster: %w", err)
	}
	if live.UID != s.Cluster.UID || live.DeletionTimestamp != nil || live.Generation != s.Cluster.Generation {
		return fmt.Errorf("the cluster is declared otherwise now: %w", ErrStale)
	}
	for _, request := range []string{resources.AnnotationRestart, resources.AnnotationRotateAuthority, resources.AnnotationDropAuthority} {
		if live.Annotations[request] != s.Cluster.Annotations[request] {
			return fmt.Errorf("annotation %s of the cluster is another one now: %w", request, ErrStale)
		}
	}
	return nil
}
