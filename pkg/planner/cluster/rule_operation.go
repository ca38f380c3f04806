// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// ruleOperation carries on with the requested operation. A restart is for the rollout, a
// replacement for the rules about the membership.
func ruleOperation(o *Observed) (Plan, bool) {
	op := o.operation()
	if op.Over() || op.Type == v1beta2.OperationRestart || op.Type == v1beta2.OperationReplace {
		return Plan{}, false
	}
	if op.StartTime == nil {
		op.Phase, op.StartTime = v1beta2.OperationRunning, o.stampNow()
	}
	switch op.Type {
	case v1beta2.OperationDefrag:
		return o.defrag(op), true
	default:
		op.Message = fmt.Sprintf("this release of the controller does not know the operation %s", op.Type)
		return o.end(op, v1beta2.OperationFailed), true
	}
}

// defrag has one member after the other rewrite its database, followers first. A member
// that defragments goes on voting and serves no client.
func (o *Observed) defrag(op *v1beta2.ClusterOperation) Plan {
	for i := range op.Results {
		if r := &op.Results[i]; r.State == v1beta2.OperationRunning {
			return o.defragment(op, r, o.member(r.Member))
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
	if plan, waits := o.prepareDefrag(m); waits {
		return o.hold(op, plan)
	}
	// It begins when the status says so. A status that is written after the begin may fail, and
	// the size before is lost then.
	op.Results = append(op.Results, v1beta2.OperationResult{Member: m.Name, State: v1beta2.OperationRunning, DBSizeBefore: m.DBSize})
	return Plan{Operation: op, RequeueAfter: recheckNow, Draining: m.Name}
}

// prepareDefrag waits until clients can do without m.
func (o *Observed) prepareDefrag(m *Member) (Plan, bool) {
	if plan, waits := o.awaitOthers(m); waits {
		return plan, true
	}
	return o.drain(m)
}

// defragment has one member do it, unless it is at it already. One that hangs is given
// up after a while.
func (o *Observed) defragment(op *v1beta2.ClusterOperation, r *v1beta2.OperationResult, m *Member) Plan {
	plan := Plan{Operation: op, RequeueAfter: recheckWaiting, Draining: m.Name}
	id, late := taskID(op, m.Name), o.Now.Sub(op.StartTime.Time) > operationPatience
	if m.Health != Healthy && (o.Task.ID != id || o.Task.Done) && late {
		r.State, r.Message = v1beta2.OperationFailed, "it no longer serves"
		return plan
	}
	if o.Task.ID == id {
		return plan
	}
	if held, waits := o.prepareDefrag(m); waits && m.Health == Healthy {
		if held.Wait != nil && late {
			r.State, r.Message = v1beta2.OperationFailed, "it did not begin: "+held.Wait.Message
		}
		held.Draining = m.Name
		return o.hold(op, held)
	}
	plan.Actions = []Action{Defragment{Name: m.Name, Task: id}}
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
// because it is full has little to lose and is not kept waiting for a dead member. Nor does
// it wait for pods to be ready: before etcd 3.4.19 and 3.5.2 the alarm makes them unready, and only
// the operation takes it back (etcd-io/etcd pull requests 12880 and 13467).
func (o *Observed) awaitOthers(m *Member) (Plan, bool) {
	if len(o.Etcd.NoSpace) > 0 {
		return Plan{}, false
	}
	voters, others := len(o.voters()), o.without(m)
	if others < voters-1 && others < diagnosis.Quorum(voters) {
		return wait(recheckQuorum, ReasonQuorumAtRisk,
			fmt.Sprintf("member %s cannot stop serving for a while: %d of the %d other voters serve", m.Name, others, voters-1),
			serveAgain), true
	}
	if other := o.notReady(m); other != nil && other.Health == Healthy && voters > 1 {
		return waitReady(other), true
	}
	return Plan{}, false
}

// disarmed is what an operation says when it has taken the alarm back.
const disarmed = "every database is below its quota; the alarm NOSPACE was disarmed"

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
		op.Message = fmt.Sprintf("the alarm NOSPACE stays: the database of %s has %d of %d bytes. Delete keys and compact, or raise spec.etcd.quotaBackendBytes. Then defragment again.",
			full.Name, full.DBSize, full.Quota)
	case op.Message == disarmed:
		op.Message = "the alarm NOSPACE was disarmed and has been raised again"
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
