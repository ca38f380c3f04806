// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/waits"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// operationPatience is how long an operation waits until the cluster is fit for it. Then
// the operation fails: an operation that waits for ever keeps all others out.
const operationPatience = time.Hour

// patienceForCopies is how long an operation may take that copies the database to so many members.
func patienceForCopies(o *Observed, members int) time.Duration {
	size := largestDatabase(o.Etcd.Members)
	for i := range o.Cluster.Status.MemberStatuses {
		size = max(size, o.Cluster.Status.MemberStatuses[i].DBSize) // members may not respond for a moment
	}
	return operationPatience + time.Duration(members)*waits.CopyTime(size)
}

// taskID names the task of one member in an operation.
func taskID(op *v1beta2.ClusterOperation, member string) string { return op.ID + "/" + member }

// followOperation returns that of the last status with what has come of it since.
func followOperation(o *Observed) *v1beta2.ClusterOperation {
	op := o.Cluster.Status.Operation.DeepCopy()
	if op.IsOver() {
		return op
	}
	if op.Type == v1beta2.OperationRestart {
		followRestart(o, op)
		return op
	}
	if op.Type == v1beta2.OperationReplace {
		followReplacement(o, op)
		if !op.IsOver() && o.Cluster.Annotations[resources.AnnotationCancelOperation] == op.ID {
			endReplacement(o.Now, op, "the replacement was cancelled with the annotation "+resources.AnnotationCancelOperation)
		}
		return op
	}
	for i := range op.Results {
		r := &op.Results[i]
		if r.State != v1beta2.OperationRunning {
			continue
		}
		m := memberByName(o.Etcd.Members, r.Member)
		switch {
		case o.Etcd.Linearizable && m == nil:
			r.State, r.Message = v1beta2.OperationFailed, "it is no longer a member"
		case o.Task.ID == taskID(op, r.Member) && o.Task.Done && o.Task.Err != "":
			r.State, r.Message = v1beta2.OperationFailed, o.Task.Err
		case o.Task.ID == taskID(op, r.Member) && o.Task.Done && m != nil && m.DBSize > 0:
			r.State, r.DBSizeAfter = v1beta2.OperationSucceeded, m.DBSize
		}
	}
	if op.ID != "" && o.Cluster.Annotations[resources.AnnotationCancelOperation] == op.ID {
		cancelOperation(o.Now, op)
	}
	return op
}

// cancelOperation closes an operation at the wish of a user, whatever it waits for. What a
// member is at goes on in etcd, which cannot be stopped; until it has ended no other
// operation is begun on a member.
func cancelOperation(now time.Time, op *v1beta2.ClusterOperation) {
	for i := range op.Results {
		if r := &op.Results[i]; r.State == v1beta2.OperationRunning {
			r.State, r.Message = v1beta2.OperationFailed, "the operation was cancelled while this member carried it out"
		}
	}
	if op.StartTime == nil {
		op.StartTime = timestamp(now)
	}
	op.Message = "the operation was cancelled with the annotation " + resources.AnnotationCancelOperation
	endOperation(now, op, v1beta2.OperationFailed)
}

func timestamp(now time.Time) *metav1.Time {
	seconds := metav1.NewTime(now.Truncate(time.Second))
	return &seconds
}

// endOperation closes an operation.
func endOperation(now time.Time, op *v1beta2.ClusterOperation, phase v1beta2.OperationPhase) Plan {
	op.Phase, op.CompletionTime = phase, timestamp(now)
	return Plan{Operation: op, RequeueAfter: recheckNow}
}

// holdOperation waits for the cluster to be fit for the next step, but not for ever.
func holdOperation(now time.Time, op *v1beta2.ClusterOperation, plan Plan) Plan {
	if plan.Wait != nil && now.Sub(op.StartTime.Time) > operationPatience {
		op.Message = fmt.Sprintf("the operation failed after it had waited for %s: %s", operationPatience, plan.Wait.Message)
		return endOperation(now, op, v1beta2.OperationFailed)
	}
	plan.Operation = op
	return plan
}
