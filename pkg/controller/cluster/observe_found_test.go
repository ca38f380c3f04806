// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestObserveFound: what an earlier cluster has left is found, except for PVCs that hold no member.
func TestObserveFound(t *testing.T) {
	t.Parallel()
	c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", UID: "uid"}}
	pvc := func(name string, edit func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		p := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: "pvc", Labels: resources.Labels("c"), Annotations: map[string]string{resources.AnnotationClusterUID: "old", resources.AnnotationVersion: "3.6.1"},
		}}
		edit(p)
		return p
	}
	s := &seen{Observed: planner.Observed{Cluster: c}}
	for _, object := range []metav1.Object{
		pvc("old", func(*corev1.PersistentVolumeClaim) {}),
		pvc("copied", func(p *corev1.PersistentVolumeClaim) { p.Annotations[resources.AnnotationClusterNamespace] = "prod" }),
		pvc("bare", func(p *corev1.PersistentVolumeClaim) { delete(p.Annotations, resources.AnnotationClusterUID) }),
		pvc("protected", func(p *corev1.PersistentVolumeClaim) { p.Labels[resources.LabelProtected] = "true" }),
		pvc("own", func(p *corev1.PersistentVolumeClaim) { p.Annotations[resources.AnnotationClusterUID] = "uid" }),
		pvc("going", func(p *corev1.PersistentVolumeClaim) { p.DeletionTimestamp = ptr.To(metav1.Now()) }),
		pvc("unused", func(p *corev1.PersistentVolumeClaim) {
			p.Annotations[resources.AnnotationMembership] = resources.MembershipAwaited
		}),
		pvc("removed", func(p *corev1.PersistentVolumeClaim) {
			p.Annotations[resources.AnnotationRetained] = resources.RetainedOfRemoved
		}),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c-record", UID: "record"}, Data: map[string]string{"clusterUID": "old"}},
	} {
		s.observeMark(object)
	}
	s.sortFound()
	want := []planner.Found{
		{Object: planner.Object{Kind: planner.KindPVC, Name: "bare", UID: "pvc"}, ClusterUID: resources.UnknownClusterUID, Labelled: true, Version: "3.6.1"},
		{Object: planner.Object{Kind: planner.KindPVC, Name: "copied", UID: "pvc"}, ClusterUID: "old", ClusterNamespace: "prod", Labelled: true, Version: "3.6.1"},
		{Object: planner.Object{Kind: planner.KindPVC, Name: "old", UID: "pvc"}, ClusterUID: "old", Labelled: true, Version: "3.6.1"},
		{Object: planner.Object{Kind: planner.KindPVC, Name: "protected", UID: "pvc"}, ClusterUID: "old", Labelled: true, Protected: true, Version: "3.6.1"},
		{Object: planner.Object{Kind: planner.KindRecord, Name: "c-record", UID: "record"}, ClusterUID: "old"},
	}
	if diff := cmp.Diff(want, s.Found); diff != "" {
		t.Errorf("it was found: %s", diff)
	}
}

// TestTakenBackMembers: a member whose PVC was taken back counts before it responds, and has its own ID then.
func TestTakenBackMembers(t *testing.T) {
	t.Parallel()
	s := &seen{Observed: planner.Observed{
		PVCs: []planner.PVC{{Name: "x", Owned: true, TakenBackFrom: "old"}, {Name: "y", Owned: true, TakenBackFrom: "old"}, {Name: "z", Owned: true}},
		Etcd: planner.Etcd{Members: []planner.Member{{ID: 1, Name: "y", Started: true}}},
	}}
	s.addTakenBack()
	s.identifyTakenBack("x", 77)
	s.identifyTakenBack("z", 78)
	want := []planner.Member{{ID: 1, Name: "y", Started: true}, {ID: 77, Name: "x", Started: true}}
	if diff := cmp.Diff(want, s.Etcd.Members); diff != "" {
		t.Errorf("the members differ: %s", diff)
	}
}
