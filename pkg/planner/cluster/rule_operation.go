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
	op := followOperation(o)
	if op.IsOver() || op.Type == v1beta2.OperationRestart || op.Type == v1beta2.OperationReplace {
		return Plan{}, false
	}
	if op.StartTime == nil {
		op.Phase, op.StartTime = v1beta2.OperationRunning, timestamp(o.Now)
	}
	switch op.Type {
	case v1beta2.OperationDefrag:
		return defrag(o, op), true
	default:
		op.Message = fmt.Sprintf("this release of the controller does not know the operation %s", op.Type)
		return endOperation(o.Now, op, v1beta2.OperationFailed), true
	}
}

// defrag has one member after the other rewrite its database, followers first. A member
// that defragments goes on voting and serves no client.
func defrag(o *Observed, op *v1beta2.ClusterOperation) Plan {
	for i := range op.Results {
		if r := &op.Results[i]; r.State == v1beta2.OperationRunning {
			return defragment(o, op, r, memberByName(o.Etcd.Members, r.Member))
		}
	}
	m := nextInOperation(o.Etcd.Members, op)
	if m == nil {
		return endDefrag(o, op)
	}
	if m.Health != Healthy || isGone(podByName(o.Pods, m.Name)) {
		op.Results = append(op.Results, v1beta2.OperationResult{Member: m.Name, State: v1beta2.OperationFailed, Message: "it does not serve"})
		return Plan{Operation: op, RequeueAfter: recheckNow}
	}
	if plan, waits := prepareDefrag(o, m); waits {
		return holdOperation(o.Now, op, plan)
	}
	// It begins when the status says so. A status that is written after the begin may fail, and
	// the size before is lost then.
	op.Results = append(op.Results, v1beta2.OperationResult{Member: m.Name, State: v1beta2.OperationRunning, DBSizeBefore: m.DBSize})
	return Plan{Operation: op, RequeueAfter: recheckNow, Draining: m.Name}
}

const endsWithAnother = "No action needed: it starts when another defragmentation has ended. After an hour the operation fails; request it again then."

// prepareDefrag waits until there is a place for the task, and until clients can do without m. A member that waits for a
// place serves.
func prepareDefrag(o *Observed, m *Member) (Plan, bool) {
	if plan, waits := awaitOthers(quorumOf(o), m); waits {
		return plan, true
	}
	if o.Task.NoPlace != "" {
		return wait(recheckSteady, ReasonTooManyDefragmentations, o.Task.NoPlace, endsWithAnother), true
	}
	return drain(o.Etcd.Members, o.Pods, m)
}

// defragment has one member do it, unless it is at it already. One that hangs is given
// up after a while.
func defragment(o *Observed, op *v1beta2.ClusterOperation, r *v1beta2.OperationResult, m *Member) Plan {
	plan := Plan{Operation: op, RequeueAfter: recheckWaiting, Draining: m.Name}
	id, late := taskID(op, m.Name), o.Now.Sub(op.StartTime.Time) > operationPatience
	if m.Health != Healthy && (o.Task.ID != id || o.Task.Done) && late {
		r.State, r.Message = v1beta2.OperationFailed, "it no longer serves"
		return plan
	}
	if o.Task.ID == id {
		return plan
	}
	if held, waits := prepareDefrag(o, m); waits && m.Health == Healthy {
		if held.Wait != nil && late {
			r.State, r.Message = v1beta2.OperationFailed, "it did not begin: "+held.Wait.Message
		}
		held.Draining = m.Name
		return holdOperation(o.Now, op, held)
	}
	plan.Actions = []Action{Defragment{Name: m.Name, Task: id}}
	return plan
}

// nextInOperation returns the member whose turn it is: those that serve before those
// that do not, the leader after its followers. It is nil after the last one.
func nextInOperation(members []Member, op *v1beta2.ClusterOperation) *Member {
	var left []*Member
	leader := findLeader(members)
	for i := range members {
		m := &members[i]
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
func awaitOthers(q quorum, m *Member) (Plan, bool) {
	if len(listNoSpace(q.members)) > 0 {
		return Plan{}, false
	}
	voters, others := len(listVoters(q.members)), q.countServingWithout(m)
	if others < voters-1 && others < diagnosis.Quorum(voters) {
		return wait(recheckQuorum, ReasonQuorumAtRisk,
			fmt.Sprintf("member %s cannot stop serving for a while: %d of the %d other voters serve", m.Name, others, voters-1),
			serveAgain), true
	}
	if other := q.findUnready(m); other != nil && other.Health == Healthy && voters > 1 {
		return waitReady(other), true
	}
	return Plan{}, false
}

// endDefrag closes the operation. If a database is still full, the operation says what to do next.
func endDefrag(o *Observed, op *v1beta2.ClusterOperation) Plan {
	phase := v1beta2.OperationSucceeded
	if slices.ContainsFunc(op.Results, func(r v1beta2.OperationResult) bool { return r.State == v1beta2.OperationFailed }) {
		phase = v1beta2.OperationFailed
	}
	if r := writesRejected(o); r != nil && r.reason == ReasonDatabaseFull && !r.byItself {
		op.Message = r.message
	}
	return endOperation(o.Now, op, phase)
}
