// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// operationPatience is how long an operation waits for the cluster to be fit for it
// before it gives up: one that waits for ever keeps all others out.
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
	for i := range op.Results {
		r := &op.Results[i]
		if r.State != v1beta2.OperationRunning {
			continue
		}
		m := o.member(r.Member)
		switch {
		case o.Etcd.Linearizable && m == nil:
			r.State, r.Message = v1beta2.OperationFailed, "it is no member any more"
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
// member is at goes on in etcd, which nobody can stop; until it has ended no other
// operation is begun on a member.
func (o *Observed) cancel(op *v1beta2.ClusterOperation) {
	for i := range op.Results {
		if r := &op.Results[i]; r.State == v1beta2.OperationRunning {
			r.State, r.Message = v1beta2.OperationFailed, "it was cancelled while this member was at it"
		}
	}
	if op.StartTime == nil {
		op.StartTime = o.stampNow()
	}
	op.Message = "it was cancelled with the annotation " + resources.AnnotationCancelOperation
	o.end(op, v1beta2.OperationFailed)
}

// ruleOperation carries on with what was asked for. A restart is for the rollout.
func ruleOperation(o *Observed) (Plan, bool) {
	op := o.operation()
	if op.Over() || op.Type == v1beta2.OperationRestart {
		return Plan{}, false
	}
	if op.StartTime == nil {
		op.Phase, op.StartTime = v1beta2.OperationRunning, o.stampNow()
	}
	switch op.Type {
	case v1beta2.OperationDefrag:
		return o.defrag(op), true
	default:
		op.Message = fmt.Sprintf("this version of the controller does not know the operation %s", op.Type)
		return o.end(op, v1beta2.OperationFailed), true
	}
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
		op.Message = fmt.Sprintf("gave up after %s: %s", operationPatience, plan.Wait.Message)
		return o.end(op, v1beta2.OperationFailed)
	}
	plan.Operation = op
	return plan
}

// defrag has one member after the other write its database anew, followers first. A
// member that is at it goes on voting and serves nobody.
func (o *Observed) defrag(op *v1beta2.ClusterOperation) Plan {
	for i := range op.Results {
		if r := &op.Results[i]; r.State == v1beta2.OperationRunning {
			return o.defragment(op, o.member(r.Member))
		}
	}
	m := o.nextInOperation(op)
	if m == nil {
		return o.endDefrag(op)
	}
	if m.Health != Healthy || o.pod(m.Name).gone() {
		op.Results = append(op.Results, v1beta2.OperationResult{Member: m.Name, State: v1beta2.OperationFailed, Message: "it does not serve"})
		return Plan{Operation: op, RequeueAfter: recheckNow}
	}
	if plan, waits := o.awaitOthers(m); waits {
		return o.hold(op, plan)
	}
	if plan, waits := o.drain(m); waits {
		return o.hold(op, plan)
	}
	op.Results = append(op.Results, v1beta2.OperationResult{Member: m.Name, State: v1beta2.OperationRunning, DBSizeBefore: m.DBSize})
	return o.defragment(op, m)
}

// defragment has one member do it, unless it is at it already. One that hangs is given
// up after a while.
func (o *Observed) defragment(op *v1beta2.ClusterOperation, m *Member) Plan {
	plan := Plan{Operation: op, RequeueAfter: recheckWaiting, Leaving: m.Name}
	id := taskID(op, m.Name)
	if m.Health != Healthy && (o.Task.ID != id || o.Task.Done) && o.Now.Sub(op.StartTime.Time) > operationPatience {
		r := op.Result(m.Name)
		r.State, r.Message = v1beta2.OperationFailed, "it does not serve any more"
		return plan
	}
	if o.Task.ID != id {
		plan.Actions = []Action{Defragment{Name: m.Name, Task: id}}
	}
	return plan
}

// nextInOperation returns the member whose turn it is: those that serve before those
// that do not, the leader after its followers. It is nil after the last one.
func (o *Observed) nextInOperation(op *v1beta2.ClusterOperation) *Member {
	var left []*Member
	leader := o.leader()
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		if (len(op.Members) == 0 || slices.Contains(op.Members, m.Name)) && op.Result(m.Name) == nil {
			left = append(left, m)
		}
	}
	if len(left) == 0 {
		return nil
	}
	order := func(m *Member) int {
		switch {
		case m.Health != Healthy:
			return 2
		case m == leader:
			return 1
		default:
			return 0
		}
	}
	return slices.MinFunc(left, func(a, b *Member) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a.Name, b.Name))
	})
}

// awaitOthers waits until the others serve without m. A cluster that takes no writes
// because it is full has little to lose and is not kept waiting for a dead member.
func (o *Observed) awaitOthers(m *Member) (Plan, bool) {
	voters, others := len(o.voters()), o.without(m)
	if others < voters-1 && others < quorum(voters) && len(o.Etcd.NoSpace) == 0 {
		return wait(recheckQuorum, "QuorumAtRisk",
			fmt.Sprintf("member %s cannot be taken out of service: %d of the %d other voters serve", m.Name, others, voters-1),
			"the members that do not serve must come back"), true
	}
	if other := o.notReady(m); other != nil && other.Health == Healthy && voters > 1 {
		return wait(recheckWaiting, "WaitingForReady",
			"member "+other.Name+" serves and its pod is not ready for clients yet", "nothing, unless it lasts"), true
	}
	return Plan{}, false
}

// disarmed is what an operation says when it has taken the alarm back.
const disarmed = "every database is below its quota; the alarm NOSPACE was taken back"

// endDefrag takes the alarm back that a full database has raised, if none is full any
// more, and closes the operation.
func (o *Observed) endDefrag(op *v1beta2.ClusterOperation) Plan {
	phase := v1beta2.OperationSucceeded
	if slices.ContainsFunc(op.Results, func(r v1beta2.OperationResult) bool { return r.State == v1beta2.OperationFailed }) {
		phase = v1beta2.OperationFailed
	}
	switch full := o.full(); {
	case len(o.Etcd.NoSpace) == 0:
	case full != nil:
		op.Message = fmt.Sprintf("the alarm NOSPACE stays: the database of %s has %d of %d bytes; delete keys and compact, or raise spec.etcd.quotaBackendBytes, and defragment again",
			full.Name, full.DBSize, full.Quota)
	case op.Message == disarmed:
		op.Message = "the alarm NOSPACE was taken back and has been raised again"
		phase = v1beta2.OperationFailed
	default:
		op.Message = disarmed
		plan := Plan{Operation: op, RequeueAfter: recheckNow}
		for _, id := range o.Etcd.NoSpace {
			plan.Actions = append(plan.Actions, DisarmNoSpace{ID: id})
		}
		return plan
	}
	return o.end(op, phase)
}

// full returns a member whose database has reached its quota, or nil.
func (o *Observed) full() *Member {
	for i := range o.Etcd.Members {
		if m := &o.Etcd.Members[i]; m.Quota > 0 && m.DBSize >= m.Quota {
			return m
		}
	}
	return nil
}
