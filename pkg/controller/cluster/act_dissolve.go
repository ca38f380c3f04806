// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// hold puts the finalizer on the cluster. What is created next is found by it when the
// cluster is deleted.
func hold(ctx context.Context, r *run, _ planner.AddFinalizer) error {
	held := r.seen.Cluster.DeepCopy()
	held.Finalizers = append(held.Finalizers, resources.Finalizer)
	return changeCluster(r, func() (*v1beta2.EtcdCluster, error) { return r.Objects.PatchFinalizers(ctx, held) })
}

// forgetRestore removes the annotations with which the cluster waited for its data.
func forgetRestore(ctx context.Context, r *run, _ planner.ForgetRestore) error {
	return changeCluster(r, func() (*v1beta2.EtcdCluster, error) { return r.Objects.ForgetRestore(ctx, r.seen.Cluster) })
}

// changeCluster continues with the EtcdCluster that a change returns.
func changeCluster(r *run, change func() (*v1beta2.EtcdCluster, error)) error {
	updated, err := change()
	if isNotFound(err) {
		return fmt.Errorf("the EtcdCluster was deleted: %w", reconcile.ErrStale)
	}
	if err != nil {
		return reconcile.StaleOnConflict(err)
	}
	r.Gate.Note(r.key, updated)
	r.seen.Cluster = updated
	return nil
}

// dissolve deletes or releases the data of a cluster that is being deleted, and lets
// the object go. Everything is read live: it is the one place where all PVCs of a cluster
// are deleted.
func dissolve(ctx context.Context, r *run, _ planner.FinishDeletion) error {
	live, err := r.Objects.GetCluster(ctx, r.seen.Cluster.Namespace, r.seen.Cluster.Name)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the EtcdCluster: %w", err)
	}
	if live.UID != r.seen.Cluster.UID || live.DeletionTimestamp == nil {
		return fmt.Errorf("the EtcdCluster was recreated or is not being deleted: %w", reconcile.ErrStale)
	}
	why, err := retentionReason(ctx, r, live)
	if err != nil {
		return err
	}
	pvcs, err := ownedPVCs(ctx, r, live)
	if err != nil {
		return err
	}
	for i := range pvcs {
		if err := deleteOrRetainPVC(ctx, r, live, &pvcs[i], retentionOf(&pvcs[i], why), givesBack(pvcs, why)); err != nil {
			return err
		}
	}
	if err := removeProtection(ctx, r, live); err != nil {
		return err
	}
	if err := removeSecretProtection(ctx, r, live); err != nil {
		return err
	}
	if why != resources.RetainedAsOrphan {
		if err := releaseToGarbageCollection(ctx, r, live); err != nil {
			return err
		}
	}
	recordDissolved(ctx, r, pvcs, why)
	released := live.DeepCopy()
	released.Finalizers = slices.DeleteFunc(released.Finalizers, func(f string) bool { return f == resources.Finalizer })
	if _, err = r.Objects.PatchFinalizers(ctx, released); err != nil && !isNotFound(err) {
		return reconcile.StaleOnConflict(err)
	}
	return nil
}

// retentionReason says why the PVCs of a deleted cluster stay; empty if they go.
func retentionReason(ctx context.Context, r *run, c *v1beta2.EtcdCluster) (string, error) {
	orphaned, err := isOrphaned(ctx, r, c)
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

// isOrphaned is true if the cluster was deleted with --cascade=orphan. The finalizer that
// says so may be gone by now: garbage collection removes it as soon as it has removed the
// owner references, and these removed references tell the same.
func isOrphaned(ctx context.Context, r *run, c *v1beta2.EtcdCluster) (bool, error) {
	if slices.Contains(c.Finalizers, metav1.FinalizerOrphanDependents) {
		return true, nil
	}
	service, err := r.Objects.GetService(ctx, c.Namespace, resources.ClientServiceName(c))
	if err != nil && !isNotFound(err) {
		return false, fmt.Errorf("read Service %s: %w", resources.ClientServiceName(c), err)
	}
	if err == nil && resources.IsOrphaned(c, service) {
		return true, nil
	}
	pods, err := r.Objects.ListPods(ctx, c.Namespace, c.Name)
	if err != nil {
		return false, fmt.Errorf("list the pods: %w", err)
	}
	return slices.ContainsFunc(pods, func(p corev1.Pod) bool { return resources.IsOrphaned(c, &p) }), nil
}

// ownedPVCs returns the PVCs of a cluster, whatever labels they have, in their order.
func ownedPVCs(ctx context.Context, r *run, c *v1beta2.EtcdCluster) ([]corev1.PersistentVolumeClaim, error) {
	all, err := r.Objects.ListNamespacePVCs(ctx, c.Namespace)
	if err != nil {
		return nil, fmt.Errorf("list the PVCs of the namespace: %w", err)
	}
	return slices.DeleteFunc(all, func(p corev1.PersistentVolumeClaim) bool {
		return p.DeletionTimestamp != nil || !resources.Owns(c, &p)
	}), nil
}

// retentionOf says why a PVC of a deleted cluster stays, if those of the cluster stay because of why; empty if it
// goes. A request to take PVCs back is an attempt until a quorum has confirmed them, and an attempt deletes no data.
func retentionOf(pvc *corev1.PersistentVolumeClaim, why string) string {
	if why == "" && resources.TakenBackFrom(pvc) != "" {
		return resources.RetainedUnconfirmed
	}
	return why
}

// givesBack is true if PVCs that no quorum has confirmed are PVCs of their earlier cluster again, as those are that came
// late. They stay with those of this cluster if anything else of it stays: all PVCs that stay name one cluster.
func givesBack(pvcs []corev1.PersistentVolumeClaim, why string) bool {
	return why == "" || why == resources.RetainedByPolicy &&
		!slices.ContainsFunc(pvcs, func(p corev1.PersistentVolumeClaim) bool { return resources.TakenBackFrom(&p) == "" })
}

// deleteOrRetainPVC deletes exactly this PVC, or notes on it why it stays.
func deleteOrRetainPVC(ctx context.Context, r *run, c *v1beta2.EtcdCluster, pvc *corev1.PersistentVolumeClaim, why string, back bool) error {
	var err error
	switch {
	case why == "":
		err = r.Objects.DeletePVC(ctx, pvc.Namespace, pvc.Name, metav1.Preconditions{UID: &pvc.UID, ResourceVersion: &pvc.ResourceVersion})
	case back && resources.TakenBackFrom(pvc) != "":
		_, err = r.Objects.UpdatePVC(ctx, resources.GivenBack(c, pvc, why))
	default:
		kept := pvc.DeepCopy()
		resources.MarkAlone(c, kept)
		metav1.SetMetaDataAnnotation(&kept.ObjectMeta, resources.AnnotationRetained, why)
		_, err = r.Objects.UpdatePVC(ctx, kept)
	}
	if isNotFound(err) {
		return nil
	}
	return reconcile.StaleOnConflict(err)
}

// releaseToGarbageCollection leaves the record and the Secrets to garbage collection, which deletes them when
// the object no longer exists.
func releaseToGarbageCollection(ctx context.Context, r *run, c *v1beta2.EtcdCluster) error {
	record, err := r.Objects.GetConfigMap(ctx, c.Namespace, resources.RecordName(c))
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("read ConfigMap %s: %w", resources.RecordName(c), err)
	}
	if err == nil && resources.OwnsRecord(c, record) {
		record = record.DeepCopy()
		if marked := resources.Mark(c, record); resources.HandOver(c, record) || marked {
			if _, err := r.Objects.UpdateConfigMap(ctx, record); err != nil && !isNotFound(err) {
				return reconcile.StaleOnConflict(err)
			}
		}
	}
	if !resources.IssuesCertificates(c) {
		return nil
	}
	names := []string{resources.CASecret(c)}
	for _, n := range neededBy(c) {
		names = append(names, n.secret)
	}
	for _, name := range names {
		secret, err := r.Objects.GetSecret(ctx, c.Namespace, name)
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read Secret %s: %w", name, err)
		}
		secret = secret.DeepCopy()
		if !resources.Owns(c, secret) {
			continue
		}
		if marked := resources.Mark(c, secret); !resources.HandOver(c, secret) && !marked {
			continue
		}
		if _, err := r.Objects.UpdateSecret(ctx, secret); err != nil && !isNotFound(err) {
			return reconcile.StaleOnConflict(err)
		}
	}
	return nil
}

// removeSecretProtection is removeProtection for the Secrets of clients.
func removeSecretProtection(ctx context.Context, r *run, c *v1beta2.EtcdCluster) error {
	for _, client := range clientsOf(c) {
		secret, err := r.Objects.GetSecret(ctx, c.Namespace, client.secret)
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read Secret %s: %w", client.secret, err)
		}
		if !resources.IsBinding(c, secret) {
			continue
		}
		if secret = secret.DeepCopy(); resources.Mark(c, secret) {
			if _, err := r.Objects.UpdateSecret(ctx, secret); err != nil && !isNotFound(err) {
				return reconcile.StaleOnConflict(err)
			}
		}
	}
	return nil
}

// removeProtection takes the label of protected objects from what garbage collection deletes next:
// the cluster may have been deleted a moment after its protection was lifted.
func removeProtection(ctx context.Context, r *run, c *v1beta2.EtcdCluster) error {
	pods, err := r.Objects.ListPods(ctx, c.Namespace, c.Name)
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	for i := range pods {
		if pod := pods[i].DeepCopy(); resources.Owns(c, pod) && resources.Mark(c, pod) {
			if _, err := r.Objects.UpdatePod(ctx, pod); err != nil && !isNotFound(err) {
				return reconcile.StaleOnConflict(err)
			}
		}
	}
	for _, name := range []string{resources.PeerServiceName(c), resources.ClientServiceName(c)} {
		service, err := r.Objects.GetService(ctx, c.Namespace, name)
		if err == nil && resources.Owns(c, service) {
			if service = service.DeepCopy(); resources.Mark(c, service) {
				_, err = r.Objects.UpdateService(ctx, service)
			}
		}
		if err != nil && !isNotFound(err) {
			return reconcile.StaleOnConflict(err)
		}
	}
	budget, err := r.Objects.GetPodDisruptionBudget(ctx, c.Namespace, c.Name)
	if err == nil && resources.Owns(c, budget) {
		if budget = budget.DeepCopy(); resources.Mark(c, budget) {
			_, err = r.Objects.UpdatePodDisruptionBudget(ctx, budget)
		}
	}
	if err != nil && !isNotFound(err) {
		return reconcile.StaleOnConflict(err)
	}
	return nil
}

// recordDissolved records on each PVC whether it is deleted or kept, and why.
func recordDissolved(ctx context.Context, r *run, pvcs []corev1.PersistentVolumeClaim, why string) {
	names := map[string][]string{}
	for i := range pvcs {
		kept := retentionOf(&pvcs[i], why)
		names[kept] = append(names[kept], pvcs[i].Name)
	}
	for _, kept := range slices.Sorted(maps.Keys(names)) {
		list := strings.Join(names[kept], ", ")
		switch kept {
		case "":
			normal(r, EventVolumesDeleted, "The EtcdCluster was deleted, and with it PVCs %s, because persistentVolumeClaimRetentionPolicy.whenDeleted is Delete", list)
		case resources.RetainedAsOrphan:
			normal(r, EventVolumesRetained, "The EtcdCluster was deleted with --cascade=orphan: PVCs %s stay", list)
		case resources.RetainedUnconfirmed:
			normal(r, EventVolumesRetained, "The EtcdCluster was deleted. PVCs %s of an earlier cluster stay, because no quorum has confirmed that they were taken back", list)
		default:
			normal(r, EventVolumesRetained, "The EtcdCluster was deleted. PVCs %s stay, because persistentVolumeClaimRetentionPolicy.whenDeleted is Retain", list)
		}
		klog.FromContext(ctx).Info("The cluster was deleted", "uid", r.seen.Cluster.UID, "PVCs", list, "retained", kept)
	}
}
