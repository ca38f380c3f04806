// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	fakeetcd "github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned/fake"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// returned is a cluster that requests what an earlier cluster of its name, with UID "other", has left.
func returned(t *testing.T, requested bool) (*deletedCluster, *run) {
	t.Helper()
	l, r := livingCluster(t)
	if requested {
		live := l.c.DeepCopy()
		live.Spec.Bootstrap = &v1beta2.BootstrapPolicy{FromVolumes: &v1beta2.FromVolumes{}}
		l.Etcd = fakeetcd.NewClientset(live)
	}
	return l, r
}

// TestTakeBack: exactly the PVC that was found becomes one of the cluster, on request, with its data and
// without an owner that would take it along.
func TestTakeBack(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		requested bool
		since     func(*corev1.PersistentVolumeClaim)
		want      error
	}{
		{"it is as it was found", true, func(*corev1.PersistentVolumeClaim) {}, nil},
		{"a retention policy has kept it", true, func(p *corev1.PersistentVolumeClaim) {
			p.Annotations[resources.AnnotationRetained] = resources.RetainedByPolicy
		}, nil},
		{"the request was taken back", false, func(*corev1.PersistentVolumeClaim) {}, reconcile.ErrStale},
		{"it was replaced", true, func(p *corev1.PersistentVolumeClaim) { p.UID = "next" }, reconcile.ErrStale},
		{"it is of a third cluster", true, func(p *corev1.PersistentVolumeClaim) {
			p.Annotations[resources.AnnotationClusterUID] = "third"
		}, reconcile.ErrStale},
		{"it has an owner", true, func(p *corev1.PersistentVolumeClaim) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "EtcdCluster", Name: "c", UID: "other", Controller: ptr.To(true)}}
		}, reconcile.ErrStale},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l, r := returned(t, test.requested)
			live, err := l.GetPVC(t.Context(), "n", "c-theirs")
			if err != nil {
				t.Fatal(err)
			}
			test.since(live)
			if _, err := l.UpdatePVC(t.Context(), live); err != nil {
				t.Fatal(err)
			}
			action := planner.TakeBack{Object: planner.Object{Kind: planner.KindPVC, Name: "c-theirs", UID: "uid-c-theirs"}, ClusterUID: "other"}
			if err := takeBack(t.Context(), r, action); !errors.Is(err, test.want) {
				t.Fatalf("the error is %v, want %v", err, test.want)
			}
			pvc, err := l.GetPVC(t.Context(), "n", "c-theirs")
			if err != nil {
				t.Fatal(err)
			}
			if resources.Owns(l.c, pvc) != (test.want == nil) {
				t.Fatalf("it belongs to cluster %q", pvc.Annotations[resources.AnnotationClusterUID])
			}
			if test.want == nil && (resources.TakenBackFrom(pvc) != "other" || pvc.Annotations[resources.AnnotationRetained] != "" || len(pvc.OwnerReferences) > 0) {
				t.Errorf("its annotations are %v, its owners %v", pvc.Annotations, pvc.OwnerReferences)
			}
		})
	}
}

// TestTakeBackRecord: the record of the earlier cluster goes on as that of this cluster, with all that it knows.
func TestTakeBackRecord(t *testing.T) {
	t.Parallel()
	l, r := returned(t, true)
	was := l.record()
	was.UID, was.Annotations[resources.AnnotationClusterUID], was.Data["clusterUID"], was.Data["removed"] = "uid-record", "other", "other", "c-z"
	was.OwnerReferences = nil
	if _, err := l.UpdateConfigMap(t.Context(), was); err != nil {
		t.Fatal(err)
	}
	if err := takeBack(t.Context(), r, planner.TakeBack{Object: planner.Object{Kind: planner.KindRecord, Name: "c-record", UID: "uid-record"}, ClusterUID: "other"}); err != nil {
		t.Fatal(err)
	}
	if record := resources.ParseRecord(l.record()); !resources.OwnsRecord(l.c, l.record()) || record.ClusterID != "beef" || len(record.Removed) != 1 {
		t.Errorf("it holds %v", l.record().Data)
	}
}

// TestTakeBackSecret: the CA of the earlier cluster goes on to sign.
func TestTakeBackSecret(t *testing.T) {
	t.Parallel()
	l, r := returned(t, true)
	was, err := l.GetSecret(t.Context(), "n", resources.CASecret(l.c))
	if err != nil {
		t.Fatal(err)
	}
	was.UID, was.Annotations[resources.AnnotationClusterUID] = "uid-ca", "other"
	was.Data = map[string][]byte{corev1.TLSPrivateKeyKey: []byte("key")}
	if _, err := l.UpdateSecret(t.Context(), was); err != nil {
		t.Fatal(err)
	}
	if err := takeBack(t.Context(), r, planner.TakeBack{Object: planner.Object{Kind: planner.KindSecret, Name: was.Name, UID: "uid-ca"}, ClusterUID: "other"}); err != nil {
		t.Fatal(err)
	}
	ca, err := l.GetSecret(t.Context(), "n", was.Name)
	if err != nil || !resources.Owns(l.c, ca) || string(ca.Data[corev1.TLSPrivateKeyKey]) != "key" || len(ca.OwnerReferences) > 0 {
		t.Errorf("the CA: %v, error %v", ca, err)
	}
}
