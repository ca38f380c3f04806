// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// lostNode is a live API with a node that is not ready since a moment.
type lostNode struct {
	*oneMember
	since time.Time
}

func (n lostNode) GetNode(context.Context, string) (*corev1.Node, error) {
	return &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(n.since)},
	}}}, nil
}

// TestAwayWithOtherClocks: a member on a lost node is away since Kubernetes called the node not ready, also
// if the clock of the node is a day off.
func TestAwayWithOtherClocks(t *testing.T) {
	t.Parallel()
	now := noon().Now()
	lost := now.Add(-10 * time.Minute)
	for name, ago := range map[string]time.Duration{
		"its clock is right":         10 * time.Minute,
		"its clock is a day behind":  24*time.Hour + 10*time.Minute,
		"its clock is a day ahead":   -24*time.Hour + 10*time.Minute,
		"its clock is an hour ahead": -50 * time.Minute,
	} {
		live := stopped()
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(now.Add(-ago))},
		}}}
		r := &run{Reconciler: &Reconciler{Config: Config{Objects: lostNode{live, lost}}}, seen: &seen{Observed: planner.Observed{Cluster: live.cluster, Now: now}}}
		if since, why := away(t.Context(), r, pod); !since.Equal(lost) || why == "" {
			t.Errorf("%s: away since %v (%s), want %v", name, since, why, lost)
		}
	}
}
