// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestIsPostponed(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	condition := func(kind v1beta2.ClusterConditionType, status corev1.ConditionStatus, message string) v1beta2.ClusterCondition {
		return v1beta2.ClusterCondition{Type: kind, Status: status, Reason: "R", Message: message, LastUpdateTime: message, ObservedGeneration: 2}
	}
	waiting := func() *v1beta2.ClusterStatus {
		return &v1beta2.ClusterStatus{
			Phase: v1beta2.ClusterPhaseRunning, Replicas: 3, ObservedGeneration: 2,
			BlockedBy: &v1beta2.BlockedBy{Reason: "WaitingForPod", Message: "a pod", Since: metav1.NewTime(now.Add(-2 * time.Second))},
			Conditions: []v1beta2.ClusterCondition{
				condition(v1beta2.ClusterConditionReady, corev1.ConditionFalse, "a pod"),
				condition(v1beta2.ClusterConditionReconciling, corev1.ConditionTrue, "a pod"),
				condition(v1beta2.ClusterConditionProgressing, corev1.ConditionTrue, "a pod"),
				condition(v1beta2.ClusterConditionAvailable, corev1.ConditionTrue, "serves"),
			},
		}
	}
	acting := func() *v1beta2.ClusterStatus {
		s := waiting()
		s.BlockedBy = nil
		for i := range s.Conditions[:3] {
			s.Conditions[i].Reason, s.Conditions[i].Message, s.Conditions[i].LastUpdateTime = "MemberJoining", "a step", "now"
		}
		return s
	}
	step := Plan{Actions: []Action{PromoteMember{ID: 1}}, RequeueAfter: recheckNow}
	for name, row := range map[string]struct {
		change func(before, after *v1beta2.ClusterStatus, plan *Plan)
		want   bool
	}{
		"a step after a wait of seconds": {func(_, _ *v1beta2.ClusterStatus, _ *Plan) {}, true},
		"a wait of minutes": {func(before, _ *v1beta2.ClusterStatus, _ *Plan) {
			before.BlockedBy.Since = metav1.NewTime(now.Add(-time.Minute))
		}, false},
		"no step":                    {func(_, _ *v1beta2.ClusterStatus, plan *Plan) { plan.Actions = nil }, false},
		"no look follows":            {func(_, _ *v1beta2.ClusterStatus, plan *Plan) { plan.RequeueAfter = 0 }, false},
		"the next look is far":       {func(_, _ *v1beta2.ClusterStatus, plan *Plan) { plan.RequeueAfter = recheckSteady }, false},
		"another wait":               {func(before, after *v1beta2.ClusterStatus, _ *Plan) { after.BlockedBy = before.BlockedBy }, false},
		"no wait before":             {func(before, _ *v1beta2.ClusterStatus, _ *Plan) { before.BlockedBy = nil }, false},
		"another size":               {func(_, after *v1beta2.ClusterStatus, _ *Plan) { after.Replicas = 4 }, false},
		"a spec that was not seen":   {func(_, after *v1beta2.ClusterStatus, _ *Plan) { after.ObservedGeneration = 3 }, false},
		"a member that serves":       {func(_, after *v1beta2.ClusterStatus, _ *Plan) { after.Members.Ready = []string{"m"} }, false},
		"a request that is accepted": {func(_, after *v1beta2.ClusterStatus, _ *Plan) { after.Recovery = &v1beta2.RecoveryStatus{ID: "r"} }, false},
		"a condition that changes": {func(_, after *v1beta2.ClusterStatus, _ *Plan) {
			after.Conditions[2].Status = corev1.ConditionFalse
		}, false},
		"the message of another condition": {func(_, after *v1beta2.ClusterStatus, _ *Plan) {
			after.Conditions[3].Message = "does not serve"
		}, false},
		"a condition that appears": {func(_, after *v1beta2.ClusterStatus, _ *Plan) {
			after.Conditions = append(after.Conditions, condition(v1beta2.ClusterConditionUpgrading, corev1.ConditionTrue, "3.6.16"))
		}, false},
	} {
		before, after, plan := waiting(), acting(), step
		row.change(before, after, &plan)
		if got := IsPostponed(now, before, after, plan); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}
