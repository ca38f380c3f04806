// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// Finalizer on an EtcdCluster keeps a deleted object until the controller has deleted
	// what belongs to it. An object that vanishes in any other way takes no data along.
	Finalizer = "etcd.database.coreos.com/cluster"
	// LabelProtected is on every object of a cluster with spec.deletionProtection. The
	// admission policy of artifacts/install rejects the deletion of such an object.
	LabelProtected = "etcd.database.coreos.com/deletion-protection"
	// AnnotationRetained on a PVC says why it stayed when its EtcdCluster was deleted, or when its
	// member was removed.
	AnnotationRetained = "etcd.database.coreos.com/retained"

	protected = "true"
	// annotationHandedOver on an object is the UID of the deleted cluster that it goes with.
	annotationHandedOver = "etcd.database.coreos.com/handed-over"
)

// Values of AnnotationRetained.
const (
	// RetainedByPolicy: persistentVolumeClaimRetentionPolicy.whenDeleted was Retain.
	RetainedByPolicy = "whenDeleted"
	// RetainedAsOrphan: the EtcdCluster was deleted with --cascade=orphan.
	RetainedAsOrphan = "orphan"
	// RetainedOfRemoved: its member was removed from etcd, and whenScaled was Retain. No cluster
	// takes it back.
	RetainedOfRemoved = "whenScaled"
	// RetainedUnconfirmed: it was taken back from an earlier cluster, and no quorum has confirmed it.
	RetainedUnconfirmed = "unconfirmed"
)

// Mark gives obj what tells that it belongs to c and whether c is protected, and the labels of spec.metadata. It says
// whether that is a change.
func Mark(c *v1beta2.EtcdCluster, obj metav1.Object) bool {
	annotations, labels := obj.GetAnnotations(), obj.GetLabels()
	changed := putAll(&annotations, map[string]string{AnnotationClusterUID: string(c.UID)})
	changed = putAll(&labels, objectLabels(c)) || changed
	if c.IsDeletionProtected() {
		changed = putAll(&labels, map[string]string{LabelProtected: protected}) || changed
	} else if _, has := labels[LabelProtected]; has {
		delete(labels, LabelProtected)
		changed = true
	}
	if changed {
		obj.SetAnnotations(annotations)
		obj.SetLabels(labels)
	}
	return changed
}

// IsMarked is true if Mark would change nothing.
func IsMarked(c *v1beta2.EtcdCluster, obj metav1.Object) bool {
	_, labelled := obj.GetLabels()[LabelProtected]
	if c.IsDeletionProtected() {
		labelled = IsProtected(obj)
	}
	for key, value := range objectLabels(c) {
		if has, found := obj.GetLabels()[key]; !found || has != value {
			return false
		}
	}
	return labelled == c.IsDeletionProtected() && obj.GetAnnotations()[AnnotationClusterUID] == string(c.UID)
}

// objectLabels are the labels that the user has every object of c carry.
func objectLabels(c *v1beta2.EtcdCluster) map[string]string {
	if c.Spec.Metadata == nil {
		return nil
	}
	return c.Spec.Metadata.Labels
}

// IsProtected is true for an object that the admission policy protects, whichever cluster it is of.
func IsProtected(obj metav1.Object) bool { return obj.GetLabels()[LabelProtected] == protected }

// IsMarkedAlone is true if MarkAlone would change nothing.
func IsMarkedAlone(c *v1beta2.EtcdCluster, obj metav1.Object) bool {
	return IsMarked(c, obj) && !slices.ContainsFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == c.UID })
}

// HandOver gives obj, which is to go with the deleted c, an owner reference to c: garbage
// collection deletes obj as soon as c no longer exists. It says whether that is a change.
// The first time it always is: MarkAlone, decided on an earlier observation, then meets a
// conflict.
func HandOver(c *v1beta2.EtcdCluster, obj metav1.Object) bool {
	annotations := obj.GetAnnotations()
	changed := putAll(&annotations, map[string]string{annotationHandedOver: string(c.UID)})
	obj.SetAnnotations(annotations)
	return putOwner(obj, Owner(c)) || changed
}

// MarkAlone is Mark for what holds data, keys or records. Such an object loses the owner
// reference that it was created with, after the live API has confirmed the cluster. With
// one, garbage collection would delete it whenever the API says that the EtcdCluster does
// not exist, as an API does that was brought back from an earlier time.
func MarkAlone(c *v1beta2.EtcdCluster, obj metav1.Object) bool {
	marked := Mark(c, obj)
	return dropOwner(obj, c) || marked
}

// MarkLasting is MarkAlone, except for a PVC that waits for its volume: it holds no data, and the
// scheduler is about to write to it. A write of the controller between would make that fail, and
// the scheduler tries again after seconds.
func MarkLasting(c *v1beta2.EtcdCluster, obj metav1.Object) bool {
	if awaitsVolume(obj) {
		return Mark(c, obj)
	}
	return MarkAlone(c, obj)
}

// IsMarkedLasting is true if MarkLasting would change nothing.
func IsMarkedLasting(c *v1beta2.EtcdCluster, obj metav1.Object) bool {
	if awaitsVolume(obj) {
		return IsMarked(c, obj)
	}
	return IsMarkedAlone(c, obj)
}

func awaitsVolume(obj metav1.Object) bool {
	pvc, is := obj.(*corev1.PersistentVolumeClaim)
	return is && pvc.Status.Phase == corev1.ClaimPending
}

// MarkOwned is Mark for what can be created again. Such an object has an owner reference.
func MarkOwned(c *v1beta2.EtcdCluster, obj metav1.Object) bool {
	marked := Mark(c, obj)
	return putOwner(obj, Owner(c)) || marked
}

// IsOrphaned is true for an object of c that MarkOwned marked and from which something
// else removed the owner reference, as garbage collection does for --cascade=orphan.
func IsOrphaned(c *v1beta2.EtcdCluster, obj metav1.Object) bool {
	return metav1.GetControllerOfNoCopy(obj) == nil && Owns(c, obj)
}

// RetainsDeleted is true if the PVCs stay when the cluster is deleted.
func RetainsDeleted(c *v1beta2.EtcdCluster) bool {
	r := podPolicy(c).PersistentVolumeClaimRetentionPolicy
	return r != nil && r.WhenDeleted == v1beta2.PVCRetain
}
