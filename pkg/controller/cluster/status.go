// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// writeStatus writes the status if it changed; at most one write.
func (r *Reconciler) writeStatus(ctx context.Context, key types.NamespacedName, s *seen, plan planner.Plan) error {
	if s.Cluster.DeletionTimestamp != nil {
		return nil
	}
	status := planner.Status(s.Observed, plan)
	if equality.Semantic.DeepEqual(status, s.Cluster.Status) {
		return nil
	}
	update := s.Cluster.DeepCopy()
	update.Status = status
	updated, err := r.Objects.UpdateClusterStatus(ctx, update)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // somebody changed the object: its event brings us back
	}
	if err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	r.Gate.Note(key, updated)
	r.announce(s, &status)
	return nil
}

// announce records an event when the quorum is lost or comes back, and when certificates
// cannot be used or can be again.
func (r *Reconciler) announce(s *seen, status *v1beta2.ClusterStatus) {
	before := conditionStatus(&s.Cluster.Status, v1beta2.ClusterConditionQuorumLost)
	after := conditionStatus(status, v1beta2.ClusterConditionQuorumLost)
	switch {
	case before != corev1.ConditionTrue && after == corev1.ConditionTrue:
		r.warning(s, EventQuorumLost, "%s", status.Reason)
	case before == corev1.ConditionTrue && after == corev1.ConditionFalse:
		r.normal(s, EventQuorumRegained, "A quorum of the members serves again")
	}
	before = conditionStatus(&s.Cluster.Status, v1beta2.ClusterConditionCertificatesValid)
	after = conditionStatus(status, v1beta2.ClusterConditionCertificatesValid)
	switch {
	case before != corev1.ConditionFalse && after == corev1.ConditionFalse:
		r.warning(s, EventCertificatesWrong, "%s", message(status, v1beta2.ClusterConditionCertificatesValid))
	case before == corev1.ConditionFalse && after == corev1.ConditionTrue:
		r.normal(s, EventCertificatesUsable, "All certificates can be used")
	}
	r.announceOperation(s, status.Operation)
}

func conditionStatus(status *v1beta2.ClusterStatus, t v1beta2.ClusterConditionType) corev1.ConditionStatus {
	for i := range status.Conditions {
		if status.Conditions[i].Type == t {
			return status.Conditions[i].Status
		}
	}
	return corev1.ConditionUnknown
}

func message(status *v1beta2.ClusterStatus, t v1beta2.ClusterConditionType) string {
	for i := range status.Conditions {
		if status.Conditions[i].Type == t {
			return status.Conditions[i].Message
		}
	}
	return ""
}
