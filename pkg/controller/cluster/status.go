// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// writeStatus writes the status if it changed and is not postponed. It drops no requested
// recovery because of a record that is out of date: the request is not made a second time.
func writeStatus(ctx context.Context, r *run, plan planner.Plan) error {
	var status v1beta2.ClusterStatus
	write := reconcile.StatusWrite[v1beta2.ClusterStatus]{
		Kind: reconcile.ClusterStatus, Gate: r.Gate, Key: r.key, Object: r.seen.Cluster, Current: r.seen.Cluster.Status, Now: r.seen.Now,
	}
	written, err := write.Do(ctx,
		func() v1beta2.ClusterStatus {
			status = planner.Status(r.seen.Observed, plan)
			if planner.IsPostponed(r.seen.Now, &r.seen.Cluster.Status, &status, plan) {
				return r.seen.Cluster.Status
			}
			return status
		},
		func(status v1beta2.ClusterStatus) (metav1.Object, error) {
			if planner.DropsRequest(&r.seen.Cluster.Status, &status) {
				if _, err := readSeenRecord(ctx, r); err != nil {
					return nil, fmt.Errorf("compare the requested recovery with the record: %w", err)
				}
			}
			update := r.seen.Cluster.DeepCopy()
			update.Status = status
			return r.Objects.UpdateClusterStatus(ctx, update)
		})
	if written {
		announce(r, &status)
	}
	if errors.Is(err, reconcile.ErrStale) {
		return nil // the event of the record leads to another reconcile
	}
	return err
}

// announce records an event when the quorum is lost or comes back, and when certificates
// cannot be used or can be again.
func announce(r *run, status *v1beta2.ClusterStatus) {
	before := conditionStatus(&r.seen.Cluster.Status, v1beta2.ClusterConditionQuorumLost)
	after := conditionStatus(status, v1beta2.ClusterConditionQuorumLost)
	switch {
	case before != corev1.ConditionTrue && after == corev1.ConditionTrue:
		warning(r, EventQuorumLost, "%s", status.Reason)
	case before == corev1.ConditionTrue && after == corev1.ConditionFalse:
		normal(r, EventQuorumRegained, "A quorum of the members serves again")
	}
	before = conditionStatus(&r.seen.Cluster.Status, v1beta2.ClusterConditionCertificatesValid)
	after = conditionStatus(status, v1beta2.ClusterConditionCertificatesValid)
	switch {
	case before != corev1.ConditionFalse && after == corev1.ConditionFalse:
		warning(r, EventCertificatesWrong, "%s", message(status, v1beta2.ClusterConditionCertificatesValid))
	case before == corev1.ConditionFalse && after == corev1.ConditionTrue:
		normal(r, EventCertificatesUsable, "All certificates can be used")
	}
	announceOperation(r, status.Operation)
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
