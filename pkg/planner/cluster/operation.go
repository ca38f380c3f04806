// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// operationPatience is how long an operation waits until the cluster is fit for it. Then
// the operation fails: an operation that waits for ever keeps all others out.
const operationPatience = time.Hour

// Task is something that takes longer than a reconcile and goes on beside it. It is
// forgotten when the controller ends; what it was for is in the status.
type Task struct {
	// ID of the last task of this cluster; empty if there was none.
	ID string
	// Done is true when it has ended, Err says why it failed.
	Done bool
	Err  string
}

// taskID names the task of one member in an operation.
func taskID(op *v1beta2.ClusterOperation, member string) string { return op.ID + "/" + member }

// operation returns that of the last status with what has come of it since.
func (o *Observed) operation() *v1beta2.ClusterOperation {
	op := o.Cluster.Status.Operation.DeepCopy()
	if op.Over() {
		return op
	}
	if op.Type == v1beta2.OperationRestart {
		o.followRestart(op)
		return op
	}
	if op.Type == v1beta2.OperationReplace {
		o.followReplacement(op)
		if !op.Over() && o.Cluster.Annotations[resources.AnnotationCancelOperation] == op.ID {
			o.endReplacement(op, "the replacement was cancelled with the annotation "+resources.AnnotationCancelOperation)
		}
		return op
	}
	for i := range op.Results {
		r := &op.Results[i]
		if r.State != v1beta2.OperationRunning {
			continue
		}
		m := o.member(r.Member)
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
		o.cancel(op)
	}
	return op
}

// cancel closes an operation at the wish of a user, whatever it waits for. What a
// member is at goes on in etcd, which cannot be stopped; until it has ended no other
// operation is begun on a member.
func (o *Observed) cancel(op *v1beta2.ClusterOperation) {
	for i := range op.Results {
		if r := &op.Results[i]; r.State == v1beta2.OperationRunning {
			r.State, r.Message = v1beta2.OperationFailed, "the operation was cancelled while this member carried it out"
		}
	}
	if op.StartTime == nil {
		op.StartTime = o.stampNow()
	}
	op.Message = "the operation was cancelled with the annotation " + resources.AnnotationCancelOperation
	o.end(op, v1beta2.OperationFailed)
}

func (o *Observed) stampNow() *metav1.Time {
	now := metav1.NewTime(o.Now.Truncate(time.Second))
	return &now
}

// end closes an operation.
func (o *Observed) end(op *v1beta2.ClusterOperation, phase v1beta2.OperationPhase) Plan {
	op.Phase, op.CompletionTime = phase, o.stampNow()
	return Plan{Operation: op, RequeueAfter: recheckNow}
}

// hold waits for the cluster to be fit for the next step, but not for ever.
func (o *Observed) hold(op *v1beta2.ClusterOperation, plan Plan) Plan {
	if plan.Wait != nil && o.Now.Sub(op.StartTime.Time) > operationPatience {
		op.Message = fmt.Sprintf("the operation failed after it had waited for %s: %s", operationPatience, plan.Wait.Message)
		return o.end(op, v1beta2.OperationFailed)
	}
	plan.Operation = op
	return plan
}
