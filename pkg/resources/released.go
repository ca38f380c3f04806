// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Released returns a copy of a PVC of c that c owns no longer. It keeps the labels,
// so that a person finds it, and nothing of the controller's touches it again.
func Released(c *v1beta2.EtcdCluster, live *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	pvc := live.DeepCopy()
	dropOwner(pvc, c)
	for _, name := range []string{AnnotationClusterUID, AnnotationRecovery, AnnotationRecoveries} {
		delete(pvc.Annotations, name)
	}
	delete(pvc.Labels, LabelProtected)
	if TakenBackFrom(pvc) == "" { // otherwise nothing proves that its member was removed
		metav1.SetMetaDataAnnotation(&pvc.ObjectMeta, AnnotationRetained, RetainedOfRemoved)
	}
	return pvc
}

// RetainsRemoved is true if the PVCs of members that are removed stay.
func RetainsRemoved(c *v1beta2.EtcdCluster) bool {
	r := podPolicy(c).PersistentVolumeClaimRetentionPolicy
	return r != nil && r.WhenScaled == v1beta2.PVCRetain
}
