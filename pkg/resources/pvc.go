// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// PVC returns the PVC of a member, which is named as the member;
// nil if the members of c have no volumes of their own. Only the controller deletes it.
func PVC(c *v1beta2.EtcdCluster, member string) *corev1.PersistentVolumeClaim {
	policy := podPolicy(c)
	if policy.PersistentVolumeClaimSpec == nil {
		return nil
	}
	pvc := &corev1.PersistentVolumeClaim{
		ObjectMeta: objectMeta(c, member, nil, nil),
		Spec:       *policy.PersistentVolumeClaimSpec.DeepCopy(),
	}
	pvc.Labels[LabelMember] = member
	noteNamespace(c, pvc)
	if len(pvc.Spec.AccessModes) == 0 {
		pvc.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	return pvc
}

// PVCDrift returns live with the marks of c and the labels of its member, and whether
// that is a change. The volume itself is left alone; see PVCGrowth.
func PVCDrift(c *v1beta2.EtcdCluster, live *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, bool) {
	pvc := live.DeepCopy()
	return pvc, repairPVC(c, pvc)
}

// HasPVCDrifted is true if PVCDrift would change something.
func HasPVCDrifted(c *v1beta2.EtcdCluster, live *corev1.PersistentVolumeClaim) bool {
	pvc := *live
	pvc.ObjectMeta = editableMeta(&live.ObjectMeta)
	return repairPVC(c, &pvc)
}

// repairPVC changes the metadata of pvc alone.
func repairPVC(c *v1beta2.EtcdCluster, pvc *corev1.PersistentVolumeClaim) bool {
	changed := putAll(&pvc.Labels, Labels(c.Name))
	changed = putAll(&pvc.Labels, map[string]string{LabelMember: pvc.Name}) || changed
	changed = noteNamespace(c, pvc) || changed
	changed = MarkLasting(c, pvc) || changed
	return forgetRejection(c, pvc) || changed
}

// putAll sets entries of a map and says whether one was different.
func putAll(m *map[string]string, entries map[string]string) bool {
	changed := false
	for k, v := range entries {
		if old, ok := (*m)[k]; !ok || old != v {
			if *m == nil {
				*m = map[string]string{}
			}
			(*m)[k] = v
			changed = true
		}
	}
	return changed
}

// putOwner makes owner one of the references of obj, exactly as it is, and says
// whether it was not.
func putOwner(obj metav1.Object, owner metav1.OwnerReference) bool {
	refs := obj.GetOwnerReferences()
	for i := range refs {
		if refs[i].UID != owner.UID {
			continue
		}
		if isSameOwner(refs[i], owner) {
			return false
		}
		refs[i] = owner
		obj.SetOwnerReferences(refs)
		return true
	}
	obj.SetOwnerReferences(append(refs, owner))
	return true
}

// dropOwner removes the reference to c from obj and says whether there was one.
func dropOwner(obj metav1.Object, c *v1beta2.EtcdCluster) bool {
	var kept []metav1.OwnerReference
	refs := obj.GetOwnerReferences()
	for _, ref := range refs {
		if ref.UID != c.UID {
			kept = append(kept, ref)
		}
	}
	obj.SetOwnerReferences(kept)
	return len(kept) != len(refs)
}

// isSameOwner compares what matters: the reference that makes a controller.
func isSameOwner(a, b metav1.OwnerReference) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID &&
		a.Controller != nil && b.Controller != nil && *a.Controller == *b.Controller
}
