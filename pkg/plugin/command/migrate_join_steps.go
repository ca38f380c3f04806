// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/migration"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/progress"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
)

// errCannotJoin means that members cannot join the running etcd as it is.
var errCannotJoin = errors.New("members of the new cluster cannot join")

// Reasons of the planner that end only when a person changes something.
const (
	reasonUnsuitable  = "ExistingEtcdUnsuitable"
	reasonVersionStep = "VersionStep"
)

// lookAtJoin says how many members of the cluster vote beside the old ones.
func lookAtJoin(t *target) (state, error) {
	c := t.cluster
	size := int64(ptr.Deref(c.Spec.Replicas, 0))
	voters := int64(0)
	for i := range c.Status.MemberStatuses {
		if m := &c.Status.MemberStatuses[i]; !m.Unmanaged && (m.Role == v1beta2.MemberRoleLeader || m.Role == v1beta2.MemberRoleFollower) {
			voters++
		}
	}
	now := state{step: progress.Step{Done: voters, Total: size, Text: waits(c)}}
	if b := c.Status.BlockedBy; b != nil && c.Status.ObservedGeneration == c.Generation && (b.Reason == reasonUnsuitable || b.Reason == reasonVersionStep) {
		return now, fmt.Errorf("%w: %s\n%s", errCannotJoin, b.Message, b.Unblock)
	}
	ready := report.ConditionOf(c, v1beta2.ClusterConditionReady)
	if ready.Status == corev1.ConditionTrue && ready.ObservedGeneration == c.Generation && voters >= size {
		now.done = true
		now.outcome = fmt.Sprintf("%d members of %s vote. Old members beside them: %s.", voters, t, strings.Join(migration.OldMembers(c), ", "))
	}
	return now, nil
}

// lookAtFinish says how many old members are left.
func lookAtFinish(t *target) (state, error) {
	c := t.cluster
	old := migration.OldMembers(c)
	now := state{step: progress.Step{Text: fmt.Sprintf("%d old members are left", len(old))}}
	if text := waits(c); text != "" {
		now.step.Text += "; " + text
	}
	ready := report.ConditionOf(c, v1beta2.ClusterConditionReady)
	if len(old) == 0 && ready.Status == corev1.ConditionTrue {
		now.done, now.outcome = true, "The old members are removed: "+t.String()+" is an ordinary cluster."
	}
	return now, nil
}

// waits is what the controller waits for; empty if it does not wait.
func waits(c *v1beta2.EtcdCluster) string {
	if b := c.Status.BlockedBy; b != nil {
		return b.Message
	}
	return ""
}
