// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"
)

func TestRuleScaleDown(t *testing.T) {
	checkDecisions(t, []decision{
		{"the last one goes: first its clients", 3, "a b c d e", nil, "scale-down: LabelPod e leaving"},
		{"not while a needed voter follows another leader than the others", 2, "a:leads b c",
			edits(func(o *Observed) { o.Etcd.Members[1].Leader = o.Etcd.Members[2].ID }), "scale-down: wait QuorumAtRisk"},
		{"a removal waits until the Service does not lead to the member", 3, "a b c d e:leaving,routed", nil, "scale-down: wait WaitingForService"},
		{"the pod of a member to remove is deleted first, which ends its open requests", 3, "a b c d e:leaving", nil, "scale-down: DrainPod e"},
		{"a removal waits while the member serves", 3, "a b c d e:leaving,terminating", nil, "scale-down: wait WaitingForPod"},
		{"a removal does not wait for a node that does not end the pod", 3, "a b c d e:leaving,overdue", nil, "scale-down: RemoveMember e ScaleDown"},
		{"a removal waits until the container has ended", 3, "a b c d e:leaving,stopping,sick", nil, "scale-down: wait WaitingForPod"},
		{"the member is removed when its container has ended", 3, "a b c d e:leaving,stopping,down", nil, "scale-down: RemoveMember e ScaleDown"},
		{"the member is removed after some time, if no kubelet reports the end of its container", 3, "a b c d e:leaving,terminating,sick", nil, "scale-down: RemoveMember e ScaleDown"},
		{"the member is removed if its pod no longer exists", 3, "a b c d e:nopod", nil, "scale-down: RemoveMember e ScaleDown"},
		{"a member whose pod is being deleted is chosen", 3, "a b c:terminating d e:leaving", nil, "scale-down: LabelPod e voter, wait WaitingForPod"},
		{"a member that was chosen stays chosen", 3, "a b:leaving c d e", nil, "scale-down: DrainPod b"},
		{"a sick member is removed instead of the chosen one", 3, "a b:leaving c:sick d e", nil, "scale-down: LabelPod b voter, RemoveMember c ScaleDown, DeletePod c"},
		{"an evicted member is removed instead of the chosen one: without both there would be no quorum", 2, "a b:finished c:leaving", nil,
			"scale-down: LabelPod c voter, RemoveMember b ScaleDown, DeletePod b"},
		{"a leader that was chosen before it led stays", 1, "a:leads,leaving b", nil, "scale-down: LabelPod a voter, LabelPod b leaving"},
		{"a member whose removal was cancelled gets its clients back", 5, "a b c d e:leaving", nil, "steady: LabelPod e voter"},
		{"a member whose removal was cancelled gets its clients back while another member joins", 5, "a b c d e:leaving f:learner,unstarted", nil, "joining: LabelPod e voter, RemoveMember f Surplus, DeletePod f"},
		{"a sick one that clients are led to is taken from the service, too", 3, "a b c d:unknown,routed", nil, "scale-down: LabelPod d leaving"},
		{"never the leader", 3, "a b c d:leaving e:leads", nil, "scale-down: DrainPod d"},
		{"a sick one first", 3, "a b:sick c d e", nil, "scale-down: RemoveMember b ScaleDown, DeletePod b"},
		{"a leader that only the controller cannot reach is still the leader", 3, "a:leads,unknown b c d", nil, "scale-down: LabelPod d leaving"},
		{"one that clients are not sent to before one that they are sent to", 3, "a b:notready c d", nil, "scale-down: LabelPod b leaving"},
		{"one that was chosen before one that clients are not sent to", 3, "a b:notready c d:leaving", nil, "scale-down: DrainPod d"},
		{"not before one that has just restarted is ready", 3, "a b:notready c d:leaving",
			edits(func(o *Observed) { podByName(o.Pods, "b").Started = o.Now.Add(-time.Second) }), "scale-down: wait WaitingForReady"},
		{"one that stays unready does not keep it", 3, "a b:notready c d:leaving",
			edits(func(o *Observed) { podByName(o.Pods, "b").Started = o.Now.Add(-settledAfter) }), "scale-down: DrainPod d"},
		{"a replaced member serves its clients while another member does not serve", 3, "a b:stale,leaving c:sick d", nil, "scale-down: LabelPod b voter, wait QuorumAtRisk"},
		{"a replaced member stays out of the Service while another member starts", 3, "a b:stale,leaving c:sick d", edits(made("c", time.Second)...), "scale-down: wait WaitingForMember"},
		{"a replaced member stays out of the Service until another member is ready", 3, "a b:stale,leaving c:notready d", nil, "scale-down: wait WaitingForReady"},
		{"a sick member goes beside a chosen one that a write may restart", 3, "a b:leaving c:sick d e", edits(func(o *Observed) {
			p := podByName(o.Pods, "d")
			p.ImageName, p.FromPolicy = "mirror/etcd", true
		}), "scale-down: RemoveMember c ScaleDown, DeletePod c"},
		{"a leader that clients are not sent to stays", 3, "a:leads,notready b c d", nil, "scale-down: LabelPod d leaving"},
		{"the volume goes too", 1, "a:claim b:claim,leaving", nil, "scale-down: RemoveMember b ScaleDown, DeletePod b, DeletePVC b"},
		{"the volume of a removed member is released", 1, "a:claim b:claim,leaving", edits(retain), "scale-down: RemoveMember b ScaleDown, DeletePod b, ReleasePVC b"},
		{"three to one, one of three sick", 1, "a b c:sick", nil, "scale-down: RemoveMember c ScaleDown, DeletePod c"},
		{"two to one: without its pod there would be no quorum", 1, "a b:leaving", nil, "scale-down: RemoveMember b ScaleDown, DeletePod b"},
		{"not if the rest would be no quorum", 3, "a:unknown b:sick c:sick d e:unknown", nil, "scale-down: wait QuorumAtRisk"},
		{"not while another member is about to restart", 1, "a b:podv=3.6.2 c", nil, "scale-down: wait WaitingForMember"},
		{"a member that is about to restart may be the one to remove", 1, "a b c:podv=3.6.2", nil, "scale-down: LabelPod c leaving"},
		{"not while the leader is unknown", 3, "a b c d", edits(disagree), "scale-down: wait NoLeader"},
	})
}

// disagree makes each half of the members follow another leader, as in the middle of
// an election.
func disagree(o *Observed) {
	for i := range o.Etcd.Members {
		o.Etcd.Members[i].Leader = uint64(1 + i%2)
	}
}
