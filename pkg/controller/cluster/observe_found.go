// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// observeFound notes an object that an earlier cluster of this name may have left.
func (s *seen) observeFound(object metav1.Object) {
	if object.GetDeletionTimestamp() != nil || isOwned(s, object) {
		return
	}
	found := planner.Found{
		Object:     planner.Object{Kind: kindOf(object), Name: object.GetName(), UID: string(object.GetUID())},
		ClusterUID: resources.FormerClusterUID(object),
		Controlled: metav1.GetControllerOfNoCopy(object) != nil,
		Labelled:   resources.IsLabelled(object, s.Cluster.Name),
		Made:       object.GetCreationTimestamp().Time,
	}
	switch live := object.(type) {
	case *corev1.PersistentVolumeClaim:
		if !resources.MayHoldFormerMember(s.Cluster, live) {
			return
		}
		found.Version = live.Annotations[resources.AnnotationVersion]
	case *corev1.Pod:
		found.MayFill = resources.MayFill(live)
	}
	s.Found = append(s.Found, found)
}

// sortFound brings what was found into a stable order: it is named in the status.
func (s *seen) sortFound() {
	slices.SortFunc(s.Found, func(a, b planner.Found) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
}
