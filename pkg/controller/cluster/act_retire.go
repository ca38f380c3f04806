// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// retire takes the old members out of service: first everything that is there loses its
// label, then the pods are deleted. The volumes stay. What was made under the old
// names, and whatever else carries the label of the cluster, is meant.
func (r *Reconciler) retire(ctx context.Context, key types.NamespacedName, s *seen, recovery *v1beta2.RecoveryStatus) error {
	if err := r.confirmRecord(ctx, s, recovery); err != nil {
		return err
	}
	pods, claims, err := r.oldObjects(ctx, s, recovery)
	if err != nil {
		return err
	}
	for i := range claims {
		claim := claims[i].DeepCopy()
		if !resources.Retired(&claim.Labels, s.Cluster.Name) {
			continue
		}
		if err := r.writeClaim(ctx, key, claim); err != nil {
			return err
		}
	}
	for i := range pods {
		pod := pods[i].DeepCopy()
		if !resources.Retired(&pod.Labels, s.Cluster.Name) {
			continue
		}
		if err := r.writePod(ctx, key, pod); err != nil {
			return err
		}
	}
	leaving, silent := "", []string(nil)
	for i := range pods {
		if end := pods[i].DeletionTimestamp; end != nil {
			if ended(&pods[i]) {
				continue
			}
			leaving = pods[i].Name
			if r.Clock.Now().After(end.Add(retireGrace)) {
				silent = append(silent, fmt.Sprintf("pod %s on node %s", pods[i].Name, pods[i].Spec.NodeName))
			}
			continue
		}
		leaving = pods[i].Name
		err := r.Objects.DeletePod(ctx, pods[i].Namespace, pods[i].Name, metav1.Preconditions{UID: &pods[i].UID})
		if err != nil && !notFound(err) {
			return conflictIsStale(err)
		}
	}
	if len(silent) > 0 {
		return fmt.Errorf("%s: %w", strings.Join(silent, ", "), errNotEnded)
	}
	if leaving != "" {
		return fmt.Errorf("pod %s is ending: %w", leaving, ErrStale)
	}
	return nil
}

// retireGrace is how long after its time has come a pod of an old member is waited for
// before it is said what is missing. Its node does not answer then. Clients may still reach
// the member there, and so may others with which it has a quorum: nothing goes on before
// there is evidence that it has ended.
const retireGrace = 5 * time.Second

// errNotEnded means that a pod has not ended although its time is over.
var errNotEnded = errors.New("the node has not reported that it has ended, so its member may still serve clients")

// ended is true if a pod that still exists runs no member.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// oldObjects returns the pods and claims of the cluster but those of the seed, as they
// are in the live API. Those that no member has used stay for the members to come.
func (r *Reconciler) oldObjects(ctx context.Context, s *seen, recovery *v1beta2.RecoveryStatus) ([]corev1.Pod, []corev1.PersistentVolumeClaim, error) {
	namespace := s.Cluster.Namespace
	listedPods, err := r.Objects.ListPods(ctx, namespace, s.Cluster.Name)
	if err != nil {
		return nil, nil, fmt.Errorf("list the pods: %w", err)
	}
	listedClaims, err := r.Objects.ListClaims(ctx, namespace, s.Cluster.Name)
	if err != nil {
		return nil, nil, fmt.Errorf("list the claims: %w", err)
	}
	names := map[string]bool{}
	for i := range listedPods {
		names[listedPods[i].Name] = true
	}
	for i := range listedClaims {
		names[listedClaims[i].Name] = true
	}
	for _, name := range recovery.OldMembers {
		names[name] = true
	}
	delete(names, recovery.Seed)
	var pods []corev1.Pod
	var claims []corev1.PersistentVolumeClaim
	for _, name := range slices.Sorted(maps.Keys(names)) {
		pod, err := r.Objects.GetPod(ctx, namespace, name)
		if err == nil && metav1.IsControlledBy(pod, s.Cluster) && !resources.IsPrepared(pod.Annotations) {
			pods = append(pods, *pod)
		} else if err != nil && !notFound(err) {
			return nil, nil, fmt.Errorf("read pod %s: %w", name, err)
		}
		claim, err := r.Objects.GetClaim(ctx, namespace, name)
		if err == nil && resources.Owns(s.Cluster, claim) && !resources.IsPrepared(claim.Annotations) {
			claims = append(claims, *claim)
		} else if err != nil && !notFound(err) {
			return nil, nil, fmt.Errorf("read claim %s: %w", name, err)
		}
	}
	return pods, claims, nil
}

// reveal puts the seed behind the services.
func (r *Reconciler) reveal(ctx context.Context, key types.NamespacedName, s *seen, name string) error {
	claim, err := r.Objects.GetClaim(ctx, s.Cluster.Namespace, name)
	if err != nil && !notFound(err) {
		return fmt.Errorf("read claim %s: %w", name, err)
	}
	if err == nil && resources.Owns(s.Cluster, claim) {
		claim = claim.DeepCopy()
		if resources.Revealed(&claim.Labels, s.Cluster.Name) {
			if err := r.writeClaim(ctx, key, claim); err != nil {
				return err
			}
		}
	}
	pod, err := r.Objects.GetPod(ctx, s.Cluster.Namespace, name)
	if notFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read pod %s: %w", name, err)
	}
	if !metav1.IsControlledBy(pod, s.Cluster) {
		return fmt.Errorf("pod %s is another one now: %w", name, ErrStale)
	}
	pod = pod.DeepCopy()
	if !resources.Revealed(&pod.Labels, s.Cluster.Name) {
		return nil
	}
	return r.writePod(ctx, key, pod)
}

// dropRetired deletes the volumes of the old members, or gives them up where the user
// wants to keep those of members that were removed.
func (r *Reconciler) dropRetired(ctx context.Context, s *seen, recovery *v1beta2.RecoveryStatus) error {
	var failed []error
	for _, name := range recovery.OldMembers {
		claim, err := r.Objects.GetClaim(ctx, s.Cluster.Namespace, name)
		if notFound(err) {
			continue
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("read claim %s: %w", name, err))
			continue
		}
		if !resources.Owns(s.Cluster, claim) || claim.DeletionTimestamp != nil || claim.Labels[resources.LabelRetired] != s.Cluster.Name {
			continue
		}
		if resources.RetainsRemoved(s.Cluster) {
			_, err = r.Objects.UpdateClaim(ctx, resources.Released(s.Cluster, claim))
		} else {
			err = r.Objects.DeleteClaim(ctx, claim.Namespace, name, metav1.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion})
		}
		if err != nil && !notFound(err) {
			failed = append(failed, conflictIsStale(err))
		}
	}
	return errors.Join(failed...)
}
