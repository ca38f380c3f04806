// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// cordoned cordons the nodes of members.
func cordoned(names ...string) func(*Observed) {
	return func(o *Observed) {
		for _, name := range names {
			podByName(o.Pods, name).Cordoned = true
		}
	}
}

// unschedulable has the pod of the next member find no node.
func unschedulable(o *Observed) {
	o.Prepared = []Pod{{
		Name: newName, UID: "pod-" + newName, Owned: true, Version: testVersion, Template: testTemplate, Trust: o.Trust,
		Role: PodLearner, Made: testNow, AwaySince: testNow, AwayWhy: "no node could take its pod", Waiting: "Unschedulable: 0/1 nodes are available",
	}}
	if isPersistent(o.Cluster) {
		o.PreparedPVCs = []PVC{{Name: newName, UID: "claim-" + newName, Owned: true}}
	}
}

func withoutBudget(o *Observed) {
	o.Cluster.Spec.PodDisruptionBudget = v1beta2.PodDisruptionBudgetDisabled
	o.PodDisruptionBudget = PodDisruptionBudget{}
}

// oneWaits has one more pod wait for its member than members are missing.
func oneWaits(o *Observed) {
	o.Prepared = []Pod{{Name: newName, UID: "pod-" + newName, Owned: true, Running: true, Version: testVersion, Template: testTemplate, Role: PodLearner, Made: testNow}}
}

func TestReplaceOnCordonedNode(t *testing.T) {
	const next = "3.7.0"
	checkDecisions(t, []decision{
		{"a pod looks for another node, and nothing waits for it", 1, "a", edits(cordoned("a"), unprepared), "steady: PreparePod c-new"},
		{"with a volume of its own", 1, "a:claim", edits(cordoned("a"), unprepared), "steady: PreparePodAndPVC c-new"},
		{"its member joins when the pod runs", 1, "a", edits(cordoned("a")), "scale-up: AddLearner c-new, AdmitPod c-new[a c-new]"},
		{"the replacement of a member with a volume joins when its pod runs", 1, "a:claim", edits(cordoned("a")), "scale-up: AddLearner c-new, AdmitPod c-new[a c-new]"},
		{"the new member gets its vote", 1, "a b:learner", edits(cordoned("a")), "joining: EnsurePodDisruptionBudget 2, PromoteMember b"},
		{"the old one hands over", 1, "a:leaving b", edits(cordoned("a")), "scale-down: MoveLeader a>b"},
		{"a member on a cordoned node goes with its volume after the hand-over", 1, "a:claim,leaving b:claim,leads", edits(cordoned("a")), "scale-down: RemoveMember a Replaced, DeletePod a, DeletePVC a"},
		{"not before the new pod is ready", 1, "a:claim,leaving b:claim,leads,notready", edits(cordoned("a")), "scale-down: wait WaitingForReady"},
		{"not while the new member does not serve", 1, "a:claim,leaving b:claim,sick", edits(cordoned("a")), "scale-down: LabelPod a voter, wait QuorumAtRisk"},
		{"one of two members", 2, "a b", edits(cordoned("b")), "scale-up: AddLearner c-new, AdmitPod c-new[a b c-new]"},
		{"both of two, one after the other", 2, "a b", edits(cordoned("a", "b")), "scale-up: AddLearner c-new, AdmitPod c-new[a b c-new]"},
		{"never two above the size", 2, "a b d", edits(cordoned("a", "b"), oneWaits), "scale-down: DeletePrepared c-new, LabelPod b leaving"},
		{"the member of the cordoned node goes, not the youngest", 2, "a b d", edits(cordoned("b")), "scale-down: LabelPod b leaving"},
		{"three members need no surge", 3, "a b c", edits(cordoned("a")), "steady"},
		{"three members become one: the member of the cordoned node goes first", 1, "a b c", edits(cordoned("b")), "scale-down: LabelPod b leaving"},
		{"a paused cluster", 1, "a", edits(cordoned("a"), pausedSpec), "paused"},
		{"a cluster without a budget is evicted", 1, "a", edits(cordoned("a"), withoutBudget), "steady"},
		{"a hibernated cluster", 1, "a:claim", edits(cordoned("a"), func(o *Observed) { o.Cluster.Spec.Replicas = ptr.To[int32](0) }), "hibernate: DeletePodDisruptionBudget, DeletePod a"},
		{"etcd without learners gets a second voter", 1, "a", edits(withoutLearners, cordoned("a")), "scale-up: EnsurePodDisruptionBudget 2, AdmitPodOfSecondVoter c-new[a c-new], AddVoter c-new"},
		{"not without a quorum", 1, "a:sick", edits(cordoned("a"), noQuorum), "quorum: wait QuorumLost"},

		{"uncordoned before the pod runs, it goes", 1, "a", edits(oneWaits), "steady: DeletePrepared c-new"},
		{"uncordoned before the new member votes, that goes", 1, "a b:learner", nil, "joining: RemoveMember b Surplus, DeletePod b"},
		{"uncordoned later, the younger voter goes", 1, "a b", nil, "scale-down: LabelPod b leaving"},

		{"no node for the pod: the cluster is at rest", 1, "a:claim", edits(cordoned("a"), unschedulable), "steady"},
		{"no node for the pod: an upgrade goes on", 1, "a:claim", edits(cordoned("a"), unschedulable, wants(next), upgradedPrepared), "rollout: UpgradePod a 3.7.0 outage"},
		{"no node for the pod: a change of the template leaves the pod that serves", 1, "a:claim,stale", edits(cordoned("a"), unschedulable), "rollout: wait NoOtherNode"},
		{"no pod looks for a node yet: a change of the template leaves the pod that serves", 1, "a:claim,stale", edits(cordoned("a"), unprepared), "rollout: PreparePodAndPVC c-new, wait NoOtherNode"},
		{"no node for the pod: an image that needs a new pod leaves the pod that serves", 1, "a:claim", edits(cordoned("a"), unschedulable, wants(next), upgradedPrepared, needsNewPod("a")), "rollout: wait NoOtherNode"},
		{"no node for the pod: the member on the other node gets its new pod", 2, "a:claim,stale b:claim,stale", edits(cordoned("a"), unschedulable), "rollout: RecreatePod b 3.6.11 outage"},
		{"no node for the pod: the member on the cordoned node keeps its pod", 2, "a:claim,stale b:claim", edits(cordoned("a"), unschedulable), "rollout: wait NoOtherNode"},
		{"no node for the pod: a member that does not serve gets its new pod", 2, "a:claim,stale,sick b:claim,leads", edits(cordoned("a"), unschedulable), "rollout: RecreatePod a 3.6.11 outage"},
		{"uncordoned, the pod is made again", 1, "a:claim,stale", edits(unprepared), "rollout: RecreatePod a 3.6.11 outage"},
		{"no node for the pod: a defragmentation goes on", 1, "a:claim", edits(cordoned("a"), unschedulable, defragAsked, result("a", isRunning)), "operation: Defragment a asked/a"},
		{"no node for the pod: the cluster grows when one is found", 3, "a:claim", edits(cordoned("a"), unschedulable), "scale-up: PreparePodAndPVC c-new, wait PodUnschedulable"},
	})
}

// needsNewPod has the declared image of a member come with a new pod only.
func needsNewPod(name string) func(*Observed) {
	return func(o *Observed) { podByName(o.Pods, name).NeedsNewPod = true }
}

// upgradedPrepared has the pod of the next member be of the declared version.
func upgradedPrepared(o *Observed) { o.Prepared[0].Version = o.Cluster.Spec.Version }

func defragAsked(o *Observed) {
	start := *timestamp(o.Now)
	o.Cluster.Status.Operation = &v1beta2.ClusterOperation{Type: v1beta2.OperationDefrag, ID: "asked", Phase: v1beta2.OperationRunning, StartTime: &start}
}

func TestCordonInStatus(t *testing.T) {
	for _, test := range []struct {
		name, text string
		size       int
		edits      []func(*Observed)
		reason     Reason
		says       []string
	}{
		{"a pod is created", "a", 1, edits(cordoned("a"), unprepared), ReasonReplacingMember, []string{"node-a is cordoned", "member a", "being created"}},
		{"the successor joins", "a b:learner", 1, edits(cordoned("a")), ReasonReplacingMember, []string{"node-a is cordoned", "replaces it"}},
		{"no node, with a volume", "a:claim", 1, edits(cordoned("a"), unschedulable), ReasonNoOtherNode,
			[]string{"node-a is cordoned", "pod c-new", "0/1 nodes are available", "Uncordon node node-a", "delete pod a and accept"}},
		{"no node, the only copy of the data", "a", 1, edits(cordoned("a"), unschedulable), ReasonNoOtherNode, []string{"Do not delete pod a", "Make a backup"}},
		{"no node, one of two copies", "a b", 2, edits(cordoned("b"), unschedulable), ReasonNoOtherNode, []string{"Do not delete pod b", "needs both"}},
		{"not cordoned", "a", 1, nil, "", nil},
		{"three members", "a b c", 3, edits(cordoned("a")), "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := observed(t, test.size, test.text, test.edits...)
			status := Status(o, Decide(o))
			c := find(status, v1beta2.ClusterConditionOnCordonedNode)
			if c == nil {
				c = &v1beta2.ClusterCondition{}
			}
			if c.Reason != string(test.reason) || (test.reason != "") != (c.Status == corev1.ConditionTrue) {
				t.Fatalf("%+v, want reason %q", c, test.reason)
			}
			for _, part := range test.says {
				if !strings.Contains(c.Message, part) {
					t.Errorf("%q does not say %q", c.Message, part)
				}
			}
			if ready := find(status, v1beta2.ClusterConditionReady); test.reason == ReasonNoOtherNode && ready.Status != corev1.ConditionTrue {
				t.Errorf("a cluster that lacks nothing but another node is not Ready: %+v", ready)
			}
		})
	}
}
