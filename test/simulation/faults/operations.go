// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
	"github.com/etcd-operator/etcd-operator/test/simulation/timeline"
)

// AskForOperations has people ask for operations in some schedules. Their dice are their own, so that all else is drawn as it is without them.
func (w *World) AskForOperations() {
	dice := timeline.NewDice(w.Plan.Seed, 3)
	if !dice.Chance(30) {
		return
	}
	for range 1 + dice.IntN(3) {
		w.After(dice.Between(5*time.Second, 90*time.Second), w.AskForDefrag)
	}
	if dice.Chance(30) {
		w.After(dice.Between(5*time.Second, 2*time.Minute), w.CancelOperation)
	}
}

// AskForReplacements has people ask for other members in some schedules. Their dice are
// their own, so that all else is drawn as it is without them.
func (w *World) AskForReplacements() {
	dice := timeline.NewDice(w.Plan.Seed, 18)
	if !dice.Chance(20) {
		return
	}
	for range 1 + dice.IntN(2) {
		which := dice.IntN(1 << 16)
		w.After(dice.Between(10*time.Second, 4*time.Minute), func() { w.askForReplacement(which) })
	}
	if dice.Chance(20) {
		w.After(dice.Between(10*time.Second, 4*time.Minute), w.CancelOperation)
	}
}

// AskForReplacement is what POST replace does for one member.
func (w *World) AskForReplacement() { w.askForReplacement(1) }

func (w *World) askForReplacement(which int) {
	if w.Quiet {
		return
	}
	w.operations++
	kubernetes.Edit(w.Store, kubernetes.KindCluster, schedules.ClusterName, func(c *v1beta2.EtcdCluster) {
		var voters []string
		for _, m := range c.Status.MemberStatuses {
			if m.Role == v1beta2.MemberRoleLeader || m.Role == v1beta2.MemberRoleFollower {
				voters = append(voters, m.Name)
			}
		}
		if !c.Status.Operation.IsOver() || len(voters) == 0 || c.Status.Recovery.IsInProgress() ||
			kubernetes.ConditionIs(c, v1beta2.ClusterConditionQuorumLost, corev1.ConditionTrue) {
			return
		}
		name := voters[which%len(voters)]
		w.Trace("a person asks for another member in the place of %s: operation-%d", name, w.operations)
		c.Status.Operation = &v1beta2.ClusterOperation{
			Type: v1beta2.OperationReplace, ID: fmt.Sprint("operation-", w.operations), Phase: v1beta2.OperationPending, Members: []string{name},
		}
	})
}

// CancelOperation is a user that stops waiting. After the faults users cancel nothing, or a
// hibernated cluster, in which an operation waits until it wakes, would be judged at rest while it
// records the cancellation.
func (w *World) CancelOperation() {
	if w.Quiet {
		return
	}
	kubernetes.Edit(w.Store, kubernetes.KindCluster, schedules.ClusterName, func(c *v1beta2.EtcdCluster) {
		if op := c.Status.Operation; !op.IsOver() {
			w.Trace("a person cancels %s", op.ID)
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, resources.AnnotationCancelOperation, op.ID)
		}
	})
}

// AskForDefrag is what POST defrag does. People stop asking when the faults end, or
// the cluster would be judged at rest while it does what they asked for.
func (w *World) AskForDefrag() {
	if w.Quiet {
		return
	}
	w.operations++
	kubernetes.Edit(w.Store, kubernetes.KindCluster, schedules.ClusterName, func(c *v1beta2.EtcdCluster) {
		if c.Status.Operation.IsOver() {
			w.Trace("a person asks for operation-%d", w.operations)
			c.Status.Operation = &v1beta2.ClusterOperation{
				Type: v1beta2.OperationDefrag, ID: fmt.Sprint("operation-", w.operations), Phase: v1beta2.OperationPending,
			}
		}
	})
}

// AskForRestart sets the annotation as a user does, or does what POST restart does.
func (w *World) AskForRestart(e schedules.Event) {
	kubernetes.Edit(w.Store, kubernetes.KindCluster, schedules.ClusterName, func(c *v1beta2.EtcdCluster) {
		request := strconv.Itoa(e.A)
		if e.B%2 == 0 {
			if !c.Status.Operation.IsOver() {
				return
			}
			c.Status.Operation = &v1beta2.ClusterOperation{Type: v1beta2.OperationRestart, ID: request, Phase: v1beta2.OperationPending}
		}
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, resources.AnnotationRestart, request)
	})
}
