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
	if object.GetDeletionTimestamp() != nil {
		return
	}
	if !isOwned(s, object) {
		s.observeFound(object)
		return
	}
	if isMarked(s, object) {
		return
	}
	s.Unlabeled = append(s.Unlabeled, planner.Object{Kind: kindOf(object), Name: object.GetName(), UID: string(object.GetUID())})
}

func isOwned(s *seen, object metav1.Object) bool {
	if record, is := object.(*corev1.ConfigMap); is {
		return resources.OwnsRecord(s.Cluster, record)
	}
	return resources.Owns(s.Cluster, object)
}

func isMarked(s *seen, object metav1.Object) bool {
	if s.keepsRecoveries(object) && !resources.KnowsRecoveries(object, s.Record.Recoveries) {
		return false
	}
	if record, is := object.(*corev1.ConfigMap); is && !resources.RecordMarked(s.Cluster, record) {
		return false
	}
	switch {
	case isLasting(object):
		return resources.IsMarkedLasting(s.Cluster, object)
	case kindOf(object) == planner.KindPod && resources.IsOrphaned(s.Cluster, object):
		return false
	default:
		return resources.IsMarked(s.Cluster, object)
	}
}

// mark changes a copy of an object, and says whether that is a change.
func mark(s *seen, object metav1.Object) bool {
	copied := s.keepsRecoveries(object) && resources.CopyRecoveries(object, s.Record.Recoveries)
	if record, is := object.(*corev1.ConfigMap); is {
		copied = resources.MarkRecord(s.Cluster, record)
	}
	switch {
	case isLasting(object):
		return resources.MarkLasting(s.Cluster, object) || copied
	case kindOf(object) == planner.KindPod:
		return resources.MarkOwned(s.Cluster, object) || copied // something else may have removed its owner
	default:
		return resources.Mark(s.Cluster, object) || copied
	}
}

// keepsRecoveries is true for the objects of members, and for the peer Service, which is there also
// after all members were lost. They know which recoveries have begun, for the case that the record is lost.
func (s *seen) keepsRecoveries(object metav1.Object) bool {
	kind := kindOf(object)
	return kind == planner.KindPod || kind == planner.KindPVC || kind == planner.KindService && object.GetName() == s.Cluster.Name
}

// isLasting is true for what holds data, keys or records.
func isLasting(object metav1.Object) bool {
	switch kindOf(object) {
	case planner.KindPVC, planner.KindRecord:
		return true
	case planner.KindSecret:
		// The Secret of a client can be created again, as a pod can.
		secret, is := object.(*corev1.Secret)
		return !is || secret.Type != resources.BindingSecretType
	case planner.KindBudget, planner.KindPod, planner.KindService:
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
	case *corev1.ConfigMap:
		return planner.KindRecord
	default:
		return ""
	}
}
