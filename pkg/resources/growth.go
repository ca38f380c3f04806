// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// AnnotationGrowthRejected on a PVC is the size that its volume was not allowed to grow
// to, and why: "<size> <why>". While it is there the same is not asked for again.
const AnnotationGrowthRejected = "etcd.database.coreos.com/growth-rejected"

// Growth compares the size of a volume with the declared one.
type Growth int

// Values of Growth.
const (
	// GrownEnough: it is as large as declared, or larger, or nothing is declared.
	GrownEnough Growth = iota
	// GrowthDue: more must be requested.
	GrowthDue
	// GrowthUnderWay: more was requested, or cannot be yet, and is not there.
	GrowthUnderWay
	// GrowthRejected: the API did not let it grow to the size that is declared.
	GrowthRejected
)

// growthTroubles are the conditions of a PVC that say why its volume does not grow.
var growthTroubles = map[corev1.PersistentVolumeClaimConditionType]bool{
	corev1.PersistentVolumeClaimControllerResizeError:   true,
	corev1.PersistentVolumeClaimNodeResizeError:         true,
	corev1.PersistentVolumeClaimFileSystemResizePending: true,
}

// PVCGrowth says how far the volume of a living PVC is from the size that c declares,
// and what is known about why. A PVC is never asked to shrink.
func PVCGrowth(c *v1beta2.EtcdCluster, live *corev1.PersistentVolumeClaim) (state Growth, why string) {
	want := desiredStorage(c)
	if want.IsZero() {
		return GrownEnough, ""
	}
	asked, has := live.Spec.Resources.Requests[corev1.ResourceStorage], live.Status.Capacity[corev1.ResourceStorage]
	switch {
	case live.Status.Phase != corev1.ClaimBound:
		return GrownEnough, "" // there is no volume yet that could be too small
	case asked.Cmp(want) < 0:
		if size, why, rejected := strings.Cut(live.Annotations[AnnotationGrowthRejected], " "); rejected && size == want.String() {
			return GrowthRejected, why
		}
		return GrowthDue, ""
	case has.Cmp(want) < 0:
		for i := range live.Status.Conditions {
			if cond := &live.Status.Conditions[i]; growthTroubles[cond.Type] && cond.Status == corev1.ConditionTrue {
				why = string(cond.Type) + ": " + cond.Message
			}
		}
		return GrowthUnderWay, why
	default:
		return GrownEnough, ""
	}
}

// GrownPVC returns live asking for the size that c declares.
func GrownPVC(c *v1beta2.EtcdCluster, live *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	pvc := live.DeepCopy()
	if pvc.Spec.Resources.Requests == nil {
		pvc.Spec.Resources.Requests = corev1.ResourceList{}
	}
	pvc.Spec.Resources.Requests[corev1.ResourceStorage] = desiredStorage(c)
	delete(pvc.Annotations, AnnotationGrowthRejected)
	return pvc
}

// GrowthRejectedPVC returns live with a note that it may not grow to the size that c
// declares.
func GrowthRejectedPVC(c *v1beta2.EtcdCluster, live *corev1.PersistentVolumeClaim, why string) *corev1.PersistentVolumeClaim {
	pvc, want := live.DeepCopy(), desiredStorage(c)
	metav1.SetMetaDataAnnotation(&pvc.ObjectMeta, AnnotationGrowthRejected, want.String()+" "+why)
	return pvc
}

// forgetRejection removes the note that a volume may not grow to a size which is not
// declared any more, and says whether there was one.
func forgetRejection(c *v1beta2.EtcdCluster, pvc *corev1.PersistentVolumeClaim) bool {
	note, noted := pvc.Annotations[AnnotationGrowthRejected]
	want := desiredStorage(c)
	if size, _, _ := strings.Cut(note, " "); !noted || size == want.String() {
		return false
	}
	delete(pvc.Annotations, AnnotationGrowthRejected)
	return true
}

// HasOtherAttributes is true for a living PVC whose volumeAttributesClassName is not the one that c
// declares. The controller does not change it, because not every Kubernetes and
// driver can; the condition VolumesAsDeclared says how. If no class is declared, any is right.
func HasOtherAttributes(c *v1beta2.EtcdCluster, live *corev1.PersistentVolumeClaim) bool {
	want := attributesClass(c)
	return want != "" && ptr.Deref(live.Spec.VolumeAttributesClassName, "") != want
}

// attributesClass is the VolumeAttributesClass that c declares; empty if none.
func attributesClass(c *v1beta2.EtcdCluster) string {
	if spec := podPolicy(c).PersistentVolumeClaimSpec; spec != nil {
		return ptr.Deref(spec.VolumeAttributesClassName, "")
	}
	return ""
}

// desiredStorage is the size of the members' volumes; zero if none is declared.
func desiredStorage(c *v1beta2.EtcdCluster) resource.Quantity {
	if spec := podPolicy(c).PersistentVolumeClaimSpec; spec != nil {
		return spec.Resources.Requests[corev1.ResourceStorage].DeepCopy()
	}
	return resource.Quantity{}
}
