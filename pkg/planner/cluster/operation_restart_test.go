// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// restartAsked puts a request to restart into annotation and status, as the API server
// does. Pods of observed were made after it unless they are marked unasked.
func restartAsked(results ...string) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Annotations = map[string]string{resources.AnnotationRestart: "asked"}
		op := &v1beta2.ClusterOperation{Type: v1beta2.OperationRestart, ID: "asked", Phase: v1beta2.OperationPending}
		if len(results) > 0 {
			start := metav1.NewTime(testNow.Add(-time.Minute))
			op.Phase, op.StartTime = v1beta2.OperationRunning, &start
		}
		for _, member := range results {
			op.Results = append(op.Results, v1beta2.OperationResult{Member: member, State: v1beta2.OperationRunning})
		}
		o.Cluster.Status.Operation = op
	}
}

func TestRestartIsForTheRollout(t *testing.T) {
	checkDecisions(t, []decision{
		{"on a volume", 3, "a:claim b:claim,unasked c:claim", edits(restartAsked()), "rollout: RecreatePod b 3.6.11"},
		{"without one", 3, "a b:unasked c", edits(restartAsked()), "scale-up: AddLearner c-new, AdmitPod c-new[a b c c-new]"},
		{"no member is left", 3, "a b c", edits(restartAsked()), "steady"},
	})
}

func TestRestartInStatus(t *testing.T) {
	late := func(o *Observed) { o.Now = o.Now.Add(2 * time.Hour) }
	other := func(o *Observed) { o.Cluster.Annotations[resources.AnnotationRestart] = "another" }
	cancelled := func(o *Observed) {
		o.Cluster.Annotations[resources.AnnotationCancelOperation] = resources.RestartRequest(o.Cluster)
	}
	asleep := func(o *Observed) { o.Cluster.Spec.Replicas = ptr.To[int32](0) }
	for _, test := range []struct {
		name, text string
		edits      []func(*Observed)
		phase      v1beta2.OperationPhase
		results    string
		says       string
	}{
		{"it begins", "a:claim,unasked b:claim,unasked c:claim,unasked", edits(restartAsked()), isRunning, "", ""},
		{"one restarts", "a:claim,unasked b:claim,sick c:claim,unasked", edits(restartAsked("b")), isRunning, "b=Running", ""},
		{"its pod is not made yet", "a:claim b:claim c:claim,nopod", edits(restartAsked("a")), isRunning, "a=Succeeded b=Succeeded", ""},
		{"one is not ready for clients", "a:claim b:claim c:claim,notready", edits(restartAsked("c")), isRunning, "c=Running a=Succeeded b=Succeeded", ""},
		{"a learner is on its way to be one", "a b c d:learner", edits(restartAsked("a")), isRunning, "a=Succeeded b=Succeeded c=Succeeded d=Running", ""},
		{"all have", "a b c", edits(restartAsked("a")), hasSucceeded, "a=Succeeded b=Succeeded c=Succeeded", ""},
		{"one is no member any more", "a b c", edits(restartAsked("x")), hasSucceeded, "a=Succeeded b=Succeeded c=Succeeded", ""},
		{"no member can be reached", "a b c", edits(restartAsked("a"), noQuorum), isRunning, "a=Running", ""},
		{"another restart", "a b c", edits(restartAsked("a"), other), hasFailed, "a=Failed(it has not served since its restart)", "another restart"},
		{"it is cancelled", "a b c", edits(restartAsked("a"), cancelled), hasFailed, "a=Failed(it has not served since its restart)", "the restart was cancelled"},
		{"members without PVCs may still copy a large database", "a b:sick c:unasked", edits(restartAsked("a"), late, hasDatabase(8<<30)), isRunning, "a=Succeeded b=Running", ""},
		{"a restart does not wait for ever", "a:claim b:claim,sick c:claim,unasked", edits(restartAsked("a"), late), hasFailed, "a=Succeeded b=Failed(it has not served since its restart)", "the restart is not complete after 1h0m0s"},
		{"a hibernated cluster has no member to restart", "", edits(restartAsked("x"), asleep, noQuorum), hasSucceeded, "", "hibernated"},
		{"a pause keeps it", "a b c", edits(restartAsked(), func(o *Observed) { o.Cluster.Spec.Paused = true }), v1beta2.OperationPending, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := observed(t, len(strings.Fields(test.text)), test.text, test.edits...)
			op := Status(o, Decide(o)).Operation
			if op == nil || op.Phase != test.phase || show(op) != test.results || !strings.Contains(op.Message, test.says) {
				t.Errorf("%+v with %q, want %s with %q and %q", op, show(op), test.phase, test.results, test.says)
			}
			if op.IsOver() != (op.CompletionTime != nil) || (op.Phase != v1beta2.OperationPending) != (op.StartTime != nil) {
				t.Errorf("phase %s and times %v, %v", op.Phase, op.StartTime, op.CompletionTime)
			}
		})
	}
}
