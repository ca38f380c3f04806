// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// observeMark notes an object of the cluster that does not say whose it is, or whether the
// cluster is protected, as it should.
func (s *seen) observeMark(object metav1.Object) {
	if object.GetDeletionTimestamp() != nil || !resources.Owns(s.Cluster, object) || isMarked(s, object) {
		return
	}
	s.Unlabeled = append(s.Unlabeled, planner.Object{Kind: kindOf(object), Name: object.GetName(), UID: string(object.GetUID())})
}

func isMarked(s *seen, object metav1.Object) bool {
	if isLasting(s, object) {
		return resources.MarkedAlone(s.Cluster, object)
	}
	return resources.Marked(s.Cluster, object)
}

// mark changes a copy of an object, and says whether that is a change.
func mark(s *seen, object metav1.Object) bool {
	if isLasting(s, object) {
		return resources.MarkAlone(s.Cluster, object)
	}
	return resources.Mark(s.Cluster, object)
}

// isLasting is true for what holds data, keys or records.
func isLasting(s *seen, object metav1.Object) bool {
	switch kindOf(object) {
	case planner.KindPVC:
		return true
	case planner.KindSecret:
		// The Secret of a client can be created again, as a pod can.
		secret, is := object.(*corev1.Secret)
		return !is || secret.Type != resources.BindingSecretType
	case planner.KindService:
		return object.GetName() == resources.PeerServiceName(s.Cluster)
	case planner.KindBudget, planner.KindPod:
		return false
	default:
		return false
	}
}

func kindOf(object metav1.Object) planner.ObjectKind {
	switch object.(type) {
	case *corev1.Pod:
		return planner.KindPod
	case *corev1.PersistentVolumeClaim:
		return planner.KindPVC
	case *corev1.Service:
		return planner.KindService
	case *policyv1.PodDisruptionBudget:
		return planner.KindBudget
	case *corev1.Secret:
		return planner.KindSecret
	default:
		return ""
	}
}
