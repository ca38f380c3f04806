// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// AnnotationTakenBackFrom on a PVC is the UID of the earlier cluster from which it was taken back. A
// quorum whose list names the member of the PVC removes the annotation. Until then nothing proves that
// the data is superfluous, so the PVC is never deleted.
const AnnotationTakenBackFrom = "etcd.database.coreos.com/taken-back-from"

// AnnotationClusterNamespace on a PVC is the namespace of the EtcdCluster whose data it holds. A copy of the PVC in another
// namespace keeps the annotation. So the copy tells where the members with its IDs may still run.
const AnnotationClusterNamespace = "etcd.database.coreos.com/cluster-namespace"

// UnknownClusterUID stands for the UID of an earlier cluster that an object does not say.
const UnknownClusterUID = "unknown"

// MayHoldFormerMember is true for a PVC with the labels of c that may hold the data of a member of an
// earlier cluster of this name. PVCs that go, that no member has used, that a recovery was filling, or whose
// member was removed from etcd while its cluster ran, hold no such data.
func MayHoldFormerMember(c *v1beta2.EtcdCluster, pvc *corev1.PersistentVolumeClaim) bool {
	return !Owns(c, pvc) && pvc.DeletionTimestamp == nil && !IsPrepared(pvc.Annotations) && pvc.Annotations[AnnotationRetained] != RetainedOfRemoved &&
		!isReversible(RecoveryOf(pvc))
}

// isReversible is true for a recovery that has not begun to replace members.
func isReversible(r *v1beta2.RecoveryStatus) bool {
	return r != nil && (r.Phase == v1beta2.RecoveryPhasePending || r.Phase == v1beta2.RecoveryPhaseFilling)
}

// WithoutPendingRecovery returns the record of an earlier cluster for the cluster that takes its PVCs back. No
// object requests a recovery any more that had not begun to replace members, so it is abandoned.
func (r Record) WithoutPendingRecovery() Record {
	if !isReversible(r.Recovery) {
		return r
	}
	ended := r.Recovery.DeepCopy()
	ended.Phase, ended.Message = v1beta2.RecoveryPhaseAbandoned, "its cluster was deleted, and another one of its name has taken the PVCs back"
	return r.WithRecovery(ended)
}

// FormerClusterUID returns the UID of the cluster that an object says it belonged to.
func FormerClusterUID(obj metav1.Object) string {
	if uid := obj.GetAnnotations()[AnnotationClusterUID]; uid != "" {
		return uid
	}
	if record, is := obj.(*corev1.ConfigMap); is && record.Data[recordClusterUID] != "" {
		return record.Data[recordClusterUID]
	}
	return UnknownClusterUID
}

// FormerClusterNamespace returns the namespace of the cluster whose data a PVC says it holds; empty if it does not say.
func FormerClusterNamespace(pvc *corev1.PersistentVolumeClaim) string {
	return pvc.Annotations[AnnotationClusterNamespace]
}

// noteNamespace has a PVC say the namespace of c, and says whether that is a change. The data of a PVC that was taken back and
// that no quorum has confirmed is still that of its earlier cluster.
func noteNamespace(c *v1beta2.EtcdCluster, pvc *corev1.PersistentVolumeClaim) bool {
	return TakenBackFrom(pvc) == "" && putAll(&pvc.Annotations, map[string]string{AnnotationClusterNamespace: c.Namespace})
}

// TakenBackFrom returns the UID of the cluster from which a PVC was taken back; empty if no quorum has
// to confirm its member.
func TakenBackFrom(pvc *corev1.PersistentVolumeClaim) string {
	return pvc.Annotations[AnnotationTakenBackFrom]
}

// IsLabelled is true for an object with the labels of the cluster called name, also for those of a hidden
// recovery member.
func IsLabelled(obj metav1.Object, name string) bool {
	labels := obj.GetLabels()
	return labels[LabelApp] == AppName && (labels[LabelCluster] == name || IsHidden(labels, name))
}

// TakeBack makes a found object one of c. What holds data, keys or records gets no owner
// reference, as MarkAlone has it.
func TakeBack(c *v1beta2.EtcdCluster, obj metav1.Object) {
	annotations := merged(obj.GetAnnotations(), nil)
	former := FormerClusterUID(obj)
	delete(annotations, annotationHandedOver)
	if _, is := obj.(*corev1.PersistentVolumeClaim); is {
		delete(annotations, AnnotationRetained)
		annotations[AnnotationTakenBackFrom] = former
	}
	obj.SetAnnotations(annotations)
	switch live := obj.(type) {
	case *corev1.PersistentVolumeClaim:
		MarkAlone(c, obj)
	case *corev1.Secret:
		if live.Type == BindingSecretType {
			MarkOwned(c, obj)
			return
		}
		MarkAlone(c, obj)
	default:
		MarkOwned(c, obj)
	}
}

// GivenBack returns a copy of a PVC that c has taken back and no quorum has confirmed, when c is deleted. It is one of
// its earlier cluster again, so that the next EtcdCluster finds it together with those that came late.
func GivenBack(c *v1beta2.EtcdCluster, live *corev1.PersistentVolumeClaim, why string) *corev1.PersistentVolumeClaim {
	pvc := live.DeepCopy()
	MarkAlone(c, pvc)
	delete(pvc.Annotations, AnnotationTakenBackFrom)
	pvc.Annotations[AnnotationRetained], pvc.Annotations[AnnotationClusterUID] = why, TakenBackFrom(live)
	if TakenBackFrom(live) == UnknownClusterUID {
		delete(pvc.Annotations, AnnotationClusterUID)
	}
	return pvc
}
