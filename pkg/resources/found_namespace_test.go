// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestNamespaceOfData: a PVC names the namespace of the cluster whose data it holds, from its creation on. A copy that was taken back
// names that of its source until a quorum confirms it, also if the cluster that has it is deleted.
func TestNamespaceOfData(t *testing.T) {
	t.Parallel()
	at := func(namespace string, uid types.UID) *v1beta2.EtcdCluster {
		return &v1beta2.EtcdCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: namespace, UID: uid},
			Spec:       v1beta2.ClusterSpec{Pod: &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{}}},
		}
	}
	prod, drill := at("prod", "a"), at("drill", "b")
	pvc := PVC(prod, "c-x")
	if FormerClusterNamespace(pvc) != "prod" {
		t.Fatalf("a new PVC: %v", pvc.Annotations)
	}
	delete(pvc.Annotations, AnnotationClusterNamespace)
	if repaired, drifted := PVCDrift(prod, pvc); !drifted || FormerClusterNamespace(repaired) != "prod" {
		t.Errorf("a PVC from before: %v", repaired.Annotations)
	}
	copied := PVC(prod, "c-x")
	copied.OwnerReferences = nil
	TakeBack(drill, copied)
	copied, _ = PVCDrift(drill, copied)
	if FormerClusterNamespace(copied) != "prod" {
		t.Errorf("a copy that was taken back: %v", copied.Annotations)
	}
	if given := GivenBack(drill, copied, RetainedUnconfirmed); FormerClusterNamespace(given) != "prod" || FormerClusterUID(given) != "a" {
		t.Errorf("a copy that was given back: %v", given.Annotations)
	}
	confirmed, _ := JoinedPVC(copied)
	if confirmed, _ = PVCDrift(drill, confirmed); FormerClusterNamespace(confirmed) != "drill" {
		t.Errorf("a copy that a quorum confirmed: %v", confirmed.Annotations)
	}
}
