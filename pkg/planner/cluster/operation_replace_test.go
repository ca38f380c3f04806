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
)

// replaceAsked puts a request to replace members into the last status.
func replaceAsked(members ...string) func(*Observed) {
	return func(o *Observed) {
		start := metav1.NewTime(testNow.Add(-time.Minute))
		o.Cluster.Status.Operation = &v1beta2.ClusterOperation{
			Type: v1beta2.OperationReplace, ID: "asked", Phase: v1beta2.OperationRunning, StartTime: &start, Members: members, Message: "plan",
		}
	}
}

func TestReplaceOnRequest(t *testing.T) {
	checkDecisions(t, []decision{
		{"another member joins first", 3, "a b:claim c", edits(replaceAsked("b")), "scale-up: AddLearner c-new, AdmitPod c-new[a b c c-new]"},
		{"the successor of a replaced member votes first", 3, "a b:claim c d:learner", edits(replaceAsked("b")), "joining: EnsurePodDisruptionBudget 3, PromoteMember d"},
		{"the replaced member leaves the Service", 3, "a b:claim c d", edits(replaceAsked("b")), "scale-down: LabelPod b leaving"},
		{"the replaced member is deleted with its data", 3, "a b:claim,leaving,terminating,sick c d", edits(replaceAsked("b")), "scale-down: RemoveMember b Replaced, DeletePVC b"},
		{"no other member goes, although it does not serve", 3, "a b:claim,leaving c:unknown d", edits(replaceAsked("b")),
			"scale-down: RemoveMember b Replaced, DeletePod b, DeletePVC b"},
		{"not if the rest would be no quorum", 3, "a b:claim,leaving c:unknown d:unknown", edits(replaceAsked("b")), "scale-down: LabelPod b voter, wait QuorumAtRisk"},
		{"a member that only responds", 3, "a b:claim c", edits(replaceAsked("b"), onlyResponds("b")), "scale-up: AddLearner c-new, AdmitPod c-new[a b c c-new]"},
		{"a member that only responds, and that a new member would ask first", 3, "a:claim b:leads c", edits(replaceAsked("a"), onlyResponds("a")),
			"replace: RemoveMember a Replaced, DeletePod a, DeletePVC a"},
		{"not before its successor can join", 3, "a:claim b:leads c", edits(replaceAsked("a"), onlyResponds("a"), unprepared),
			"replace: PreparePodAndPVC c-new, wait WaitingForPod"},
		{"not if the rest would be no quorum without it", 3, "a:claim b:leads c:sick", edits(replaceAsked("a"), onlyResponds("a")), "replace: wait QuorumAtRisk"},
		{"one that a new member would ask first and that responds with nothing stays for now", 3, "a:claim,sick b:leads c", edits(replaceAsked("a")),
			"scale-up: AddLearner c-new, AdmitPod c-new[a b c c-new]"},
		{"a member that only responds goes at last", 3, "a b:claim,leaving c d", edits(replaceAsked("b"), onlyResponds("b")),
			"scale-down: RemoveMember b Replaced, DeletePod b, DeletePVC b"},
		{"the leader hands over", 3, "a:claim,leaving b c d", edits(replaceAsked("a")), "scale-down: MoveLeader a>b"},
		{"the only member", 1, "a:claim", edits(replaceAsked("a")), "scale-up: AddLearner c-new, AdmitPod c-new[a c-new]"},
		{"two of them, one after the other", 3, "a b:claim c:claim d", edits(replaceAsked("b", "c")), "scale-down: LabelPod c leaving"},
		{"etcd without learners takes no voter while one does not serve, so that one goes first", 3, "a b:sick,claim c", edits(withoutLearners, replaceAsked("b")),
			"replace: RemoveMember b Replaced, DeletePod b, DeletePVC b"},
		{"one that was replaced", 3, "a c d", edits(replaceAsked("b")), "steady"},
		{"a request that was cancelled", 3, "a b:claim c", edits(replaceAsked("b"), cancelledByUser("asked")), "steady"},
		{"a cancelled request leaves no member too many", 3, "a b:claim c d", edits(replaceAsked("b"), cancelledByUser("asked")), "scale-down: LabelPod d leaving"},
		{"a request that has ended", 3, "a b:claim c", edits(replaceAsked("b"), func(o *Observed) { o.Cluster.Status.Operation.Phase = hasFailed }), "steady"},
		{"not without a quorum", 3, "a b:claim c", edits(replaceAsked("b"), noQuorum), "quorum: wait EtcdUnreachable"},
	})
}

// onlyResponds makes a member one that responds and completes no linearizable read.
func onlyResponds(name string) func(*Observed) {
	return func(o *Observed) {
		m := memberByName(o.Etcd.Members, name)
		m.Health, m.Reason = Unhealthy, ReasonNotServing
	}
}

func TestReplaceInStatus(t *testing.T) {
	late := func(o *Observed) { o.Now = o.Now.Add(2 * time.Hour) }
	asleep := func(o *Observed) { o.Cluster.Spec.Replicas = ptr.To[int32](0) }
	begins := func(o *Observed) {
		o.Cluster.Status.Operation.Phase, o.Cluster.Status.Operation.StartTime = v1beta2.OperationPending, nil
	}
	for _, test := range []struct {
		name, text string
		edits      []func(*Observed)
		phase      v1beta2.OperationPhase
		results    string
		says       string
	}{
		{"it begins", "a b c", edits(replaceAsked("b"), begins), isRunning, "", "plan"},
		{"its successor joins", "a b c d:learner", edits(replaceAsked("b")), isRunning, "", "plan"},
		{"one of two was replaced", "a b d", edits(replaceAsked("b", "c")), isRunning, "c=Succeeded", "plan"},
		{"both were", "a d e", edits(replaceAsked("b", "c")), hasSucceeded, "b=Succeeded c=Succeeded", ""},
		{"it was beside old members", "x:old y:old a c d", edits(joins, replaceAsked("b")), hasSucceeded, "b=Succeeded", ""},
		{"its successor does not vote yet beside old members", "x:old a c d:learner", edits(joins, replaceAsked("b")), isRunning, "b=Succeeded", "plan"},
		{"the successor does not vote yet", "a c d:learner", edits(replaceAsked("b")), isRunning, "b=Succeeded", "plan"},
		{"the member list cannot be read", "a c d", edits(replaceAsked("b"), noQuorum), isRunning, "", "plan"},
		{"it is cancelled", "a b c", edits(replaceAsked("b"), cancelledByUser("asked")), hasFailed, "", "was cancelled with the annotation etcd.database.coreos.com/cancel-operation; these members stay: b"},
		{"it does not wait for ever", "a b d", edits(replaceAsked("b", "c"), late), hasFailed, "c=Succeeded", "not complete after 1h0m0s; these members stay: b"},
		{"it may still copy two large databases", "a b d", edits(replaceAsked("b", "c"), late, hasDatabase(8<<30)), isRunning, "c=Succeeded", "plan"},
		{"no member says its size, and the status does", "a b d", edits(replaceAsked("b", "c"), late, noQuorum, func(o *Observed) {
			o.Cluster.Status.MemberStatuses = []v1beta2.MemberStatus{{Name: "a", DBSize: 8 << 30}}
		}), isRunning, "", "plan"},
		{"the cluster is hibernated", "", edits(replaceAsked("b"), asleep, noQuorum), hasFailed, "", "hibernated"},
		{"a pause keeps it", "a b c", edits(replaceAsked("b"), pausedSpec, late), isRunning, "", "plan"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := observed(t, 3, test.text)
			for _, edit := range test.edits {
				edit(&o)
			}
			op := Status(o, Decide(o)).Operation
			if op == nil || op.Phase != test.phase || show(op) != test.results || !strings.Contains(op.Message, test.says) || test.says == "" && op.Message != "" {
				t.Errorf("%+v with %q, want %s with %q and %q", op, show(op), test.phase, test.results, test.says)
			}
			if op.IsOver() != (op.CompletionTime != nil) || op.StartTime == nil {
				t.Errorf("phase %s and times %v, %v", op.Phase, op.StartTime, op.CompletionTime)
			}
		})
	}
}
