// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// hold puts the finalizer on the cluster. What is created next is found by it when the
// cluster is deleted.
func (r *Reconciler) hold(ctx context.Context, key types.NamespacedName, s *seen) error {
	held := s.Cluster.DeepCopy()
	held.Finalizers = append(held.Finalizers, resources.Finalizer)
	updated, err := r.Objects.PatchFinalizers(ctx, held)
	if notFound(err) {
		return fmt.Errorf("the cluster was deleted: %w", ErrStale)
	}
	if err != nil {
		return conflictIsStale(err)
	}
	r.Gate.Note(key, updated)
	s.Cluster = updated
	return nil
}

// dissolve decides what becomes of the data of a cluster that is being deleted, and lets
// the object go. Everything is read live: it is the one place where all PVCs of a cluster
// are deleted.
func (r *Reconciler) dissolve(ctx context.Context, s *seen) error {
	live, err := r.Objects.GetCluster(ctx, s.Cluster.Namespace, s.Cluster.Name)
	if notFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the cluster: %w", err)
	}
	if live.UID != s.Cluster.UID || live.DeletionTimestamp == nil {
		return fmt.Errorf("the cluster is not the one that is being deleted: %w", ErrStale)
	}
	why, err := r.retained(ctx, live)
	if err != nil {
		return err
	}
	claims, err := r.claimsOf(ctx, live)
	if err != nil {
		return err
	}
	for i := range claims {
		if err := r.settleClaim(ctx, live, &claims[i], why); err != nil {
			return err
		}
	}
	if err := r.unprotect(ctx, live); err != nil {
		return err
	}
	if why != resources.RetainedAsOrphan {
		if err := r.handOver(ctx, live); err != nil {
			return err
		}
	}
	r.announceDissolved(ctx, s, claims, why)
	released := live.DeepCopy()
	released.Finalizers = slices.DeleteFunc(released.Finalizers, func(f string) bool { return f == resources.Finalizer })
	if _, err = r.Objects.PatchFinalizers(ctx, released); err != nil && !notFound(err) {
		return conflictIsStale(err)
	}
	return nil
}

// retained says why the PVCs of a deleted cluster stay; empty if they go.
func (r *Reconciler) retained(ctx context.Context, c *v1beta2.EtcdCluster) (string, error) {
	orphaned, err := r.orphaned(ctx, c)
	switch {
	case err != nil:
		return "", err
	case orphaned:
		return resources.RetainedAsOrphan, nil
	case resources.RetainsDeleted(c):
		return resources.RetainedByPolicy, nil
	default:
		return "", nil
	}
}

// orphaned is true if the cluster was deleted with --cascade=orphan. The finalizer that
// says so may be gone by now: garbage collection removes it as soon as it has removed the
// owner references, and these removed references tell the same.
func (r *Reconciler) orphaned(ctx context.Context, c *v1beta2.EtcdCluster) (bool, error) {
	if slices.Contains(c.Finalizers, metav1.FinalizerOrphanDependents) {
		return true, nil
	}
	service, err := r.Objects.GetService(ctx, c.Namespace, resources.ClientServiceName(c))
	if err != nil && !notFound(err) {
		return false, fmt.Errorf("read service %s: %w", resources.ClientServiceName(c), err)
	}
	if err == nil && resources.Orphaned(c, service) {
		return true, nil
	}
	pods, err := r.Objects.ListPods(ctx, c.Namespace, c.Name)
	if err != nil {
		return false, fmt.Errorf("list the pods: %w", err)
	}
	return slices.ContainsFunc(pods, func(p corev1.Pod) bool { return resources.Orphaned(c, &p) }), nil
}

// claimsOf returns the PVCs of a cluster, whatever labels they have, in their order.
func (r *Reconciler) claimsOf(ctx context.Context, c *v1beta2.EtcdCluster) ([]corev1.PersistentVolumeClaim, error) {
	all, err := r.Objects.ListNamespaceClaims(ctx, c.Namespace)
	if err != nil {
		return nil, fmt.Errorf("list the PVCs of the namespace: %w", err)
	}
	return slices.DeleteFunc(all, func(p corev1.PersistentVolumeClaim) bool {
		return p.DeletionTimestamp != nil || !resources.Owns(c, &p)
	}), nil
}

// settleClaim deletes exactly this PVC, or notes on it why it stays.
func (r *Reconciler) settleClaim(ctx context.Context, c *v1beta2.EtcdCluster, claim *corev1.PersistentVolumeClaim, why string) error {
	var err error
	if why == "" {
		err = r.Objects.DeleteClaim(ctx, claim.Namespace, claim.Name, metav1.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion})
	} else {
		kept := claim.DeepCopy()
		resources.MarkAlone(c, kept)
		metav1.SetMetaDataAnnotation(&kept.ObjectMeta, resources.AnnotationRetained, why)
		_, err = r.Objects.UpdateClaim(ctx, kept)
	}
	if notFound(err) {
		return nil
	}
	return conflictIsStale(err)
}

// handOver leaves the record and the Secrets to garbage collection, which deletes them when
// the object no longer exists. The controller has no right to delete Secrets.
func (r *Reconciler) handOver(ctx context.Context, c *v1beta2.EtcdCluster) error {
	service, err := r.Objects.GetService(ctx, c.Namespace, resources.PeerServiceName(c))
	if err != nil && !notFound(err) {
		return fmt.Errorf("read service %s: %w", resources.PeerServiceName(c), err)
	}
	if err == nil && resources.Owns(c, service) {
		service = service.DeepCopy()
		if marked := resources.Mark(c, service); resources.HandOver(c, service) || marked {
			if _, err := r.Objects.UpdateService(ctx, service); err != nil && !notFound(err) {
				return conflictIsStale(err)
			}
		}
	}
	if !resources.IssuesCertificates(c) {
		return nil
	}
	names := []string{resources.AuthoritySecret(c)}
	for _, n := range neededBy(c) {
		names = append(names, n.secret)
	}
	for _, name := range names {
		secret, err := r.Objects.GetSecret(ctx, c.Namespace, name)
		if notFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read secret %s: %w", name, err)
		}
		secret = secret.DeepCopy()
		if !resources.Owns(c, secret) {
			continue
		}
		if marked := resources.Mark(c, secret); !resources.HandOver(c, secret) && !marked {
			continue
		}
		if _, err := r.Objects.UpdateSecret(ctx, secret); err != nil && !notFound(err) {
			return conflictIsStale(err)
		}
	}
	return nil
}

// unprotect takes the label of protected objects from what garbage collection deletes next:
// the cluster may have been deleted a moment after its protection was lifted.
func (r *Reconciler) unprotect(ctx context.Context, c *v1beta2.EtcdCluster) error {
	pods, err := r.Objects.ListPods(ctx, c.Namespace, c.Name)
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	for i := range pods {
		if pod := pods[i].DeepCopy(); resources.Owns(c, pod) && resources.Mark(c, pod) {
			if _, err := r.Objects.UpdatePod(ctx, pod); err != nil && !notFound(err) {
				return conflictIsStale(err)
			}
		}
	}
	service, err := r.Objects.GetService(ctx, c.Namespace, resources.ClientServiceName(c))
	if err == nil && resources.Owns(c, service) {
		if service = service.DeepCopy(); resources.Mark(c, service) {
			_, err = r.Objects.UpdateService(ctx, service)
		}
	}
	if err != nil && !notFound(err) {
		return conflictIsStale(err)
	}
	budget, err := r.Objects.GetPodDisruptionBudget(ctx, c.Namespace, c.Name)
	if err == nil && resources.Owns(c, budget) {
		if budget = budget.DeepCopy(); resources.Mark(c, budget) {
			_, err = r.Objects.UpdatePodDisruptionBudget(ctx, budget)
		}
	}
	if err != nil && !notFound(err) {
		return conflictIsStale(err)
	}
	return nil
}

// announceDissolved says what became of the PVCs, and why.
func (r *Reconciler) announceDissolved(ctx context.Context, s *seen, claims []corev1.PersistentVolumeClaim, why string) {
	if len(claims) == 0 {
		return
	}
	names := make([]string, 0, len(claims))
	for i := range claims {
		names = append(names, claims[i].Name)
	}
	list := strings.Join(names, ", ")
	switch why {
	case "":
		r.normal(s, EventVolumesDeleted, "The EtcdCluster was deleted, and with it PVCs %s, because persistentVolumeClaimRetentionPolicy.whenDeleted is Delete", list)
	case resources.RetainedAsOrphan:
		r.normal(s, EventVolumesRetained, "The EtcdCluster was deleted with --cascade=orphan: PVCs %s stay", list)
	default:
		r.normal(s, EventVolumesRetained, "The EtcdCluster was deleted. PVCs %s stay, because persistentVolumeClaimRetentionPolicy.whenDeleted is Retain", list)
	}
	klog.FromContext(ctx).Info("The cluster was deleted", "uid", s.Cluster.UID, "PVCs", list, "retained", why)
}
