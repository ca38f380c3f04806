// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// followRestart reads from the pods how a restart goes. The rollout restarts members
// because of the annotation that names the same request; here nothing is decided.
func followRestart(o *Observed, op *v1beta2.ClusterOperation) {
	if o.Cluster.Spec.Paused || o.Cluster.DeletionTimestamp != nil {
		return
	}
	if op.StartTime == nil {
		op.Phase, op.StartTime = v1beta2.OperationRunning, timestamp(o.Now)
	}
	if resources.RestartRequest(o.Cluster) != op.ID {
		op.Message = "the restart was cancelled, or annotation " + resources.AnnotationRestart + " was changed, which requests another restart"
		endRestart(o.Now, op, v1beta2.OperationFailed)
		return
	}
	if desiredSize(o.Cluster) == 0 && len(o.Pods) == 0 {
		op.Message, op.Results = "the cluster is hibernated; its members start again when spec.size is set", nil
		endRestart(o.Now, op, v1beta2.OperationSucceeded)
		return
	}
	if o.Etcd.Linearizable && noteRestarted(o.Etcd.Members, o.Pods, op) {
		endRestart(o.Now, op, v1beta2.OperationSucceeded)
		return
	}
	copies := 0
	if !isPersistent(o.Cluster) {
		copies = desiredSize(o.Cluster) // another member replaces each
	}
	if patience := patienceForCopies(o, copies); o.Now.Sub(op.StartTime.Time) > patience {
		op.Message = fmt.Sprintf("the restart is not complete after %s; the remaining members restart as soon as that is safe", patience)
		endRestart(o.Now, op, v1beta2.OperationFailed)
	}
}

// noteRestarted records the members that have restarted. It is true if all members have
// restarted and serve. A member without a PVC does not come back: a new member replaces it.
func noteRestarted(members []Member, pods []Pod, op *v1beta2.ClusterOperation) bool {
	left := len(listVoters(members)) == 0
	for i := range members {
		m := &members[i]
		pod := podByName(pods, m.Name)
		if isGone(pod) || pod.Restart != op.ID {
			left = true
			continue
		}
		r := op.Result(m.Name)
		if r == nil {
			op.Results = append(op.Results, v1beta2.OperationResult{Member: m.Name})
			r = &op.Results[len(op.Results)-1]
		}
		if r.State = v1beta2.OperationSucceeded; m.Health != Healthy || !pod.Ready || m.Learner {
			r.State, left = v1beta2.OperationRunning, true
		}
	}
	op.Results = slices.DeleteFunc(op.Results, func(r v1beta2.OperationResult) bool { return memberByName(members, r.Member) == nil })
	return !left
}

// endRestart closes a restart.
func endRestart(now time.Time, op *v1beta2.ClusterOperation, phase v1beta2.OperationPhase) {
	for i := range op.Results {
		if r := &op.Results[i]; r.State == v1beta2.OperationRunning {
			r.State, r.Message = v1beta2.OperationFailed, "it has not served since its restart"
		}
	}
	op.Phase, op.CompletionTime = phase, timestamp(now)
}
