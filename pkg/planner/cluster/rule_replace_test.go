// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "testing"

func TestRuleReplace(t *testing.T) {
	checkDecisions(t, []decision{
		{"a voter lost its pod and its data", 3, "a b c:nopod", nil, "replace: RemoveMember c Lost"},
		{"a voter's pod goes with its data: first it ends what clients have asked it for", 3, "a b c:terminating", nil, "replace: wait WaitingForPod"},
		{"a node that does not end the pod does not keep it", 3, "a b c:overdue", nil, "replace: RemoveMember c Lost"},
		{"a node that does not end the pod, and the others are no quorum", 3, "a b:sick c:overdue", nil, "replace: wait QuorumAtRisk"},
		{"a lost voter is removed when its container has ended", 3, "a b c:terminating,sick", nil, "replace: RemoveMember c Lost"},
		{"a lost voter stays while its container is stopping: it may hold writes", 3, "a b c:stopping,sick", nil, "replace: wait WaitingForPod"},
		{"as soon as the container has ended", 3, "a b c:stopping,down", nil, "replace: RemoveMember c Lost"},
		{"a leader whose pod is stopping hands over", 3, "a:stopping b c", nil, "replace: MoveLeader a>b"},
		{"at once if the quorum stands or falls with it", 2, "a b:terminating", nil, "replace: RemoveMember b Lost"},
		{"a voter was evicted", 3, "a b c:finished", nil, "replace: RemoveMember c Lost, DeletePod c"},
		{"a voter comes back to its volume", 3, "a:claim b:claim c:terminating,claim", nil, "replace: wait WaitingForPod"},
		{"a lost voter is replaced beside one that comes back", 5, "a:claim b:claim c:claim,overdue,sick d:nopod e:claim", nil, "replace: RemoveMember d Lost"},
		{"the successor of a lost voter joins beside a voter that comes back", 5, "a:claim b:claim c:claim,overdue,sick e:claim", nil, "scale-up: AddLearner c-new, AdmitPod c-new[a b c e c-new]"},
		{"in an etcd without learners a successor needs all voters", 5, "a:claim b:claim c:claim,overdue,sick e:claim", edits(withoutLearners), "replace: wait WaitingForPod"},
		{"nothing joins beside a voter that comes back if the others are no quorum", 3, "a:claim,terminating", nil, "replace: wait WaitingForPod"},
		{"a lost voter stays if the others are no quorum before one comes back", 3, "a:claim b:claim,overdue,sick c:nopod", nil, "replace: FindMember c, wait WaitingForPod"},
		{"a leader that comes back to its volume hands over", 3, "a:claim,terminating b:claim c:claim", nil, "replace: MoveLeader a>b"},
		{"not when it has stopped", 3, "a:claim,terminating,sick b:claim c:claim", nil, "replace: wait WaitingForPod"},
		{"not to a member whose pod goes, too", 2, "a:claim,terminating b:claim,terminating", nil, "replace: wait WaitingForPod"},
		{"the leader's pod goes: it hands over first", 3, "a:terminating b c", nil, "replace: MoveLeader a>b"},
		{"a leader without a pod cannot hand over", 3, "a:nopod b:leads c", nil, "replace: RemoveMember a Lost"},
		{"two of five, one after the other", 5, "a b c d:nopod e:nopod", nil, "replace: RemoveMember d Lost"},
		{"not if the rest would be no quorum", 5, "a b:sick c:sick d:nopod e", nil, "replace: FindMember d, wait QuorumAtRisk"},
		{"two that cannot be seen and that etcd hears", 3, "a b:nopod c:nopod", nil, "replace: FindMember b, FindMember c, wait QuorumAtRisk"},
		{"not the last one", 1, "a:terminating", nil, "replace: wait QuorumAtRisk"},
		{"a voter that is only unresponsive is left alone", 3, "a b c:sick", nil, "steady"},
		{"a voter that the controller cannot reach is left alone", 3, "a b c:unknown", nil, "steady"},
		{"a voter that does not start is left alone", 3, "a b c:down", nil, "steady"},
		{"a pod that is not owned is no pod", 3, "a b c:theirs", nil, "replace: RemoveMember c Lost"},
	})
}
