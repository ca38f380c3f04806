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
		Protected:  resources.IsProtected(object),
		Made:       object.GetCreationTimestamp().Time,
	}
	switch live := object.(type) {
	case *corev1.PersistentVolumeClaim:
		if !resources.MayHoldFormerMember(s.Cluster, live) {
			return
		}
		found.Version, found.ClusterNamespace = live.Annotations[resources.AnnotationVersion], resources.FormerClusterNamespace(live)
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

// takenBack returns the names of the members whose PVCs were taken back and that no quorum has confirmed.
func (s *seen) takenBack() []string {
	var names []string
	for i := range s.PVCs {
		if c := &s.PVCs[i]; c.Owned && !c.Terminating && c.TakenBackFrom != "" {
			names = append(names, c.Name)
		}
	}
	return names
}

// addTakenBack adds the members whose PVCs were taken back, and that no status has named. Their IDs are in
// their data, so each has a small number until it responds.
func (s *seen) addTakenBack() {
	for _, name := range s.takenBack() {
		if slices.ContainsFunc(s.Etcd.Members, func(m planner.Member) bool { return m.Name == name }) {
			continue
		}
		id := uint64(1)
		for slices.ContainsFunc(s.Etcd.Members, func(m planner.Member) bool { return m.ID == id }) {
			id++
		}
		s.Etcd.Members = append(s.Etcd.Members, planner.Member{ID: id, Name: name, Started: true})
	}
}

// identifyTakenBack gives a member whose PVC was taken back the ID with which it responds.
func (s *seen) identifyTakenBack(name string, id uint64) {
	for i := range s.Etcd.Members {
		if m := &s.Etcd.Members[i]; m.Name == name && slices.Contains(s.takenBack(), name) {
			m.ID = id
		}
	}
}
