// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// askedFor puts an operation into the last status.
func askedFor(members ...string) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Status.Operation = &v1beta2.ClusterOperation{
			Type: v1beta2.OperationDefrag, ID: "op", Phase: v1beta2.OperationPending, Members: members,
		}
		for i := range o.Etcd.Members {
			o.Etcd.Members[i].DBSize = 100
		}
	}
}

// result puts what it has come to for a member into the last status.
func result(member string, state v1beta2.OperationPhase) func(*Observed) {
	return func(o *Observed) {
		op := o.Cluster.Status.Operation
		op.Phase = v1beta2.OperationRunning
		start := metav1.NewTime(testNow.Add(-time.Minute))
		op.StartTime = &start
		op.Results = append(op.Results, v1beta2.OperationResult{Member: member, State: state, DBSizeBefore: 500})
	}
}

func task(id string, done bool, err string) func(*Observed) {
	return func(o *Observed) { o.Task = Task{ID: id, Done: done, Err: err} }
}

func noPlace(o *Observed) { o.Task = Task{NoPlace: "others defragment"} }

func noPlaceBeside(o *Observed) { o.Task.NoPlace = "others defragment" }

func cancelledByUser(id string) func(*Observed) {
	return func(o *Observed) { o.Cluster.Annotations = map[string]string{resources.AnnotationCancelOperation: id} }
}

// noSpace has every member report that the members with these IDs have raised the alarm.
func noSpace(ids ...uint64) func(*Observed) {
	return func(o *Observed) {
		for i := range o.Etcd.Members {
			for _, id := range ids {
				o.Etcd.Members[i].Alarms = append(o.Etcd.Members[i].Alarms, Alarm{Type: alarmNoSpace, RaisedBy: id})
			}
		}
	}
}

const (
	hasSucceeded = v1beta2.OperationSucceeded
	hasFailed    = v1beta2.OperationFailed
	isRunning    = v1beta2.OperationRunning
)

func TestRuleOperation(t *testing.T) {
	checkDecisions(t, []decision{
		{"nothing begins before the status says so", 3, "a b c", edits(askedFor()), "operation"},
		{"it begins", 3, "a b c", edits(askedFor(), result("b", isRunning)), "operation: Defragment b op/b"},
		{"not when another member failed meanwhile", 3, "a b c:sick", edits(askedFor(), result("b", isRunning)), "operation: wait QuorumAtRisk"},
		{"a member that leads by now hands over", 3, "a b:leads c", edits(askedFor(), result("b", isRunning)), "operation: MoveLeader b>a"},
		{"no place for it", 3, "a b c", edits(askedFor(), noPlace), "operation: wait TooManyDefragmentations"},
		{"no place by now", 3, "a b:leads c", edits(askedFor(), result("b", isRunning), noPlace), "operation: wait TooManyDefragmentations"},
		{"its own place counts", 3, "a b c", edits(askedFor(), result("b", isRunning), task("op/b", false, ""), noPlaceBeside), "operation"},
		{"it is at it", 3, "a b c", edits(askedFor(), result("b", isRunning), task("op/b", false, "")), "operation"},
		{"another task was the last one", 3, "a b c", edits(askedFor(), result("b", isRunning), task("old/b", true, "")), "operation: Defragment b op/b"},
		{"the next member is defragmented after the one before", 3, "a b c", edits(askedFor(), result("b", isRunning), task("op/b", true, "")), "operation"},
		{"a failure stops nothing", 3, "a b c", edits(askedFor(), result("b", isRunning), task("op/b", true, "no")), "operation"},
		{"the leader hands over first", 3, "a b:index=9 c:index=10", edits(askedFor(), result("b", hasSucceeded), result("c", hasSucceeded)), "operation: MoveLeader a>c"},
		{"the leader is defragmented last", 3, "a b c:leads", edits(askedFor(), result("b", hasSucceeded), result("c", hasSucceeded), result("a", isRunning)), "operation: Defragment a op/a"},
		{"a single member has no member to hand over to", 1, "a", edits(askedFor(), result("a", isRunning)), "operation: Defragment a op/a"},
		{"two, while both serve", 2, "a b", edits(askedFor(), result("b", isRunning)), "operation: Defragment b op/b"},
		{"only those that were named", 3, "a b c", edits(askedFor("c"), result("c", isRunning)), "operation: Defragment c op/c"},
		{"not while another member does not serve", 3, "a b c:sick", edits(askedFor("b")), "operation: wait QuorumAtRisk"},
		{"a defragmentation while another member does not serve, and no write is possible", 3, "a b c:sick", edits(askedFor("b"), noSpace(1), result("b", isRunning)), "operation: Defragment b op/b"},
		{"not while another member is not ready for clients", 3, "a b c:notready", edits(askedFor("b")), "operation: wait WaitingForReady"},
		{"a defragmentation while the alarm may be what makes members unready", 3, "a:notready b:notready c:notready", edits(askedFor(), noSpace(1, 2, 3), result("b", isRunning)), "operation: Defragment b op/b"},
		{"one of five may be missing", 5, "a b c d e:sick", edits(askedFor("b"), result("b", isRunning)), "operation: Defragment b op/b"},
		{"one that does not serve is not waited for", 3, "a b:sick c", edits(askedFor("b")), "operation"},
		{"a lost member is replaced first", 3, "a b c:nopod", edits(askedFor()), "replace: RemoveMember c Lost"},
		{"a version comes after it", 3, "a b c", edits(askedFor(), wants("3.7.0"), result("b", isRunning)), "operation: Defragment b op/b"},
		{"without a quorum nothing is begun", 3, "a b c", edits(askedFor(), noQuorum), "quorum: wait EtcdUnreachable"},
		{"all is done", 1, "a", edits(askedFor(), result("a", hasSucceeded)), "operation"},
		{"the operation was cancelled", 3, "a b c", edits(askedFor(), result("b", isRunning), cancelledByUser("op")), "steady"},
		{"another operation was cancelled", 3, "a b c", edits(askedFor(), cancelledByUser("op-before"), result("b", isRunning)), "operation: Defragment b op/b"},
		{"it is over", 3, "a b c", edits(askedFor(), func(o *Observed) { o.Cluster.Status.Operation.Phase = hasSucceeded }), "steady"},
	})
}

// TestOperationInStatus: after each decision the status holds the operation, so that the
// next reconciliation continues it.
func TestOperationInStatus(t *testing.T) {
	for _, test := range []struct {
		name, text string
		edits      []func(*Observed)
		phase      v1beta2.OperationPhase
		results    string
		says       string
	}{
		{"followers first", "a b c", edits(askedFor()), isRunning, "b=Running", ""},
		{"only those that were named", "a b c", edits(askedFor("c")), isRunning, "c=Running", ""},
		{"the leader last", "a b c:leads", edits(askedFor(), result("a", hasSucceeded)), isRunning, "a=Succeeded b=Running", ""},
		{
			"it does not wait for ever to begin", "a b c:sick", edits(askedFor(), result("b", isRunning), func(o *Observed) { o.Now = o.Now.Add(2 * time.Hour) }),
			hasFailed, "b=Failed(it did not begin: member b cannot stop serving for a while: 1 of the 2 other voters serve)", "failed after it had waited for 1h0m0s",
		},
		{"it goes on", "a b c", edits(askedFor(), result("b", isRunning), task("op/b", true, "")), isRunning, "b=Succeeded:500>100 c=Running", ""},
		{"one has failed", "a b c", edits(askedFor(), result("b", isRunning), task("op/b", true, "disk")), isRunning, "b=Failed(disk) c=Running", ""},
		{"one is no member any more", "a b c", edits(askedFor(), result("x", isRunning)), isRunning, "x=Failed(it is no longer a member) b=Running", ""},
		{"one does not serve", "a b:sick c", edits(askedFor("b")), isRunning, "b=Failed(it does not serve)", ""},
		{"all have hasSucceeded", "a", edits(askedFor(), result("a", hasSucceeded)), hasSucceeded, "a=Succeeded", ""},
		{"one of them failed", "a", edits(askedFor(), result("a", hasFailed)), hasFailed, "a=Failed()", ""},
		{"every database is below its quota", "a", edits(askedFor(), result("a", hasSucceeded), noSpace(1)), hasSucceeded, "a=Succeeded", ""},
		{"a database is still full", "a", edits(askedFor(), size(16<<20), result("a", hasSucceeded), noSpace(1)), hasSucceeded, "a=Succeeded", "the database of a has reached its quota of 16Mi"},
		{
			"an operation does not wait for ever", "a b c:sick", edits(askedFor("b"), result("x", hasSucceeded), func(o *Observed) { o.Now = o.Now.Add(2 * time.Hour) }),
			hasFailed, "x=Succeeded", "failed after it had waited for 1h0m0s: member b cannot stop serving",
		},
		{"what is not known fails", "a b c", edits(askedFor(), func(o *Observed) { o.Cluster.Status.Operation.Type = "Explode" }), hasFailed, "", "does not know the operation Explode"},
		{"another rule speaks, and what was done is kept", "a b c:nopod", edits(askedFor(), result("b", isRunning), task("op/b", true, "")), isRunning, "b=Succeeded:500>100", ""},
		{"cancelled while it waits", "a b c:sick", edits(askedFor("b"), cancelledByUser("op")), hasFailed, "", "the operation was cancelled"},
		{"cancelled without a quorum", "a b c", edits(askedFor(), noQuorum, cancelledByUser("op")), hasFailed, "", "the operation was cancelled"},
		{"cancelled while the cluster is paused", "a b c", edits(askedFor(), pausedSpec, cancelledByUser("op")), hasFailed, "", "the operation was cancelled"},
		{
			"cancelled while a member is at it", "a b c", edits(askedFor(), result("a", hasSucceeded), result("b", isRunning), task("op/b", false, ""), cancelledByUser("op")),
			hasFailed, "a=Succeeded b=Failed(the operation was cancelled while this member carried it out)", "the operation was cancelled",
		},
		{"a pause keeps it", "a b c", edits(askedFor(), func(o *Observed) { o.Cluster.Spec.Paused = true }), v1beta2.OperationPending, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := observed(t, len(strings.Fields(test.text)), test.text, test.edits...)
			before := o.Cluster.Status.Operation.DeepCopy()
			op := Status(o, Decide(o)).Operation
			if op == nil || op.Phase != test.phase || show(op) != test.results || !strings.Contains(op.Message, test.says) {
				t.Errorf("%+v with %q, want %s with %q and %q", op, show(op), test.phase, test.results, test.says)
			}
			if op.IsOver() != (op.CompletionTime != nil) || (op.Phase != v1beta2.OperationPending) != (op.StartTime != nil) {
				t.Errorf("phase %s and times %v, %v", op.Phase, op.StartTime, op.CompletionTime)
			}
			if before.Phase != o.Cluster.Status.Operation.Phase || len(before.Results) != len(o.Cluster.Status.Operation.Results) {
				t.Error("what was observed was changed")
			}
		})
	}
}

func show(op *v1beta2.ClusterOperation) string {
	var list []string
	for _, r := range op.Results {
		text := r.Member + "=" + string(r.State)
		if r.State == hasSucceeded && r.DBSizeAfter > 0 {
			text += ":500>100"
		}
		if r.State == hasFailed {
			text += "(" + r.Message + ")"
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

func TestProgressOfAnOperation(t *testing.T) {
	o := observed(t, 3, "a b c", askedFor())
	status := Status(o, Decide(o))
	i := slices.IndexFunc(status.Conditions, func(c v1beta2.ClusterCondition) bool { return c.Type == v1beta2.ClusterConditionProgressing })
	if status.Conditions[i].Reason != "Operation" {
		t.Errorf("the condition Progressing says %s", status.Conditions[i].Reason)
	}
}
