// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func retain(o *Observed) {
	persist(o)
	o.Cluster.Spec.Pod.PersistentVolumeClaimRetentionPolicy = &v1beta2.PersistentVolumeClaimRetentionPolicy{WhenScaled: v1beta2.ClaimRetain}
}

func TestRuleOrphans(t *testing.T) {
	going := func(o *Observed) {
		o.Pods[len(o.Pods)-1].Terminating = true
	}
	checkDecisions(t, []decision{
		{"a pod of no member", 3, "a b c", edits(pod("x", true)), "orphans: DeletePod x"},
		{"with its volume", 3, "a:claim b:claim c:claim", edits(pod("x", true), claim("x", true)), "orphans: DeletePod x, DeleteClaim x"},
		{"a volume that is kept", 3, "a:claim b:claim c:claim", edits(claim("x", true), retain), "orphans: ReleaseClaim x"},
		{"one that goes already", 3, "a b c", edits(pod("x", true), going), "steady"},
		{"somebody else's", 3, "a b c", edits(pod("x", false)), "steady"},
		{"before a change goes on", 3, "a b c:learner", edits(pod("x", true)), "orphans: DeletePod x"},
	})
}

func TestRuleInFlight(t *testing.T) {
	checkDecisions(t, []decision{
		{"a learner that has not started", 3, "a b c:learner,unstarted", nil, "in-flight: wait WaitingForMember"},
		{"a learner that is about to restart", 3, "a b c:learner,podv=3.6.2", nil, "in-flight: wait WaitingForMember"},
		{"a learner next to one that is about to restart", 5, "a b:podv=3.6.2 c:sick d:learner", nil, "in-flight: wait QuorumAtRisk"},
		{"a learner that serves", 3, "a b c:learner", nil, "in-flight: PromoteMember c"},
		{"a learner that waits for an image that is not wanted any more", 3, "a b c:learner,unstarted,outdated", nil,
			"in-flight: UpgradePod c " + testVersion + " waiting"},
		{"a learner that waits for the image of the others", 3, "a b c:learner,unstarted,outdated", edits(wants("3.8.0")),
			"in-flight: wait WaitingForMember"},
		{"a learner that does not serve yet, and whose vote is not needed", 3, "a b c:learner,sick", nil, "in-flight: PromoteMember c"},
		{"a learner that cannot be asked, and whose vote is not needed", 3, "a b c:learner,unknown", nil, "in-flight: PromoteMember c"},
		{"a learner that does not serve yet, and whose vote is needed", 3, "a b:sick c:learner,sick", nil, "in-flight: wait WaitingForMember"},
		{"a learner that does not run", 3, "a b c:learner,down", nil, "in-flight: wait WaitingForMember"},
		{"a learner that does not run for a while", 3, "a b c:learner,down,ends=4", nil, "in-flight: wait WaitingForMember"},
		{"a learner that ends again and again", 3, "a b c:learner,down,ends=5", nil, "in-flight: RemoveMember c Wedged, DeletePod c"},
		{"with its volume, too", 3, "a:claim b:claim c:learner,down,ends=9,claim", nil, "in-flight: RemoveMember c Wedged, DeletePod c, DeleteClaim c"},
		{"a learner that ended often and serves", 3, "a b c:learner,ends=9", nil, "in-flight: PromoteMember c"},
		{"a learner that ended and has started again, and whose vote is not needed", 3, "a b c:learner,sick,ends=1", nil, "in-flight: wait WaitingForMember"},
		{"a voter that ends again and again", 3, "a b c:down,ends=9", nil, "steady"},
		{"a learner that was never given a pod", 3, "a b c:learner,unstarted,nopod", nil, "in-flight: RemoveMember c Lost"},
		{"a learner that lost its data", 3, "a b c:learner,nopod", nil, "in-flight: RemoveMember c Lost"},
		{"a learner whose pod goes with its data", 3, "a b c:learner,terminating", nil, "in-flight: RemoveMember c Lost"},
		{"a learner whose pod goes and comes back", 3, "a:claim b:claim c:learner,terminating,claim", nil, "in-flight: wait WaitingForPod"},
		{"a learner that nobody wants any more", 2, "a b c:learner", nil, "in-flight: RemoveMember c Unwanted, DeletePod c"},
		{"with its volume", 2, "a:claim b:claim c:learner,claim", nil, "in-flight: RemoveMember c Unwanted, DeletePod c, DeleteClaim c"},
		{"a promotion that would cost the quorum", 5, "a b:sick c:sick d:learner", nil, "in-flight: wait QuorumAtRisk"},
		{"a promotion that waits for members that perhaps are only hidden", 5, "a b:nopod c:nopod d:learner", nil,
			"in-flight: FindMember b, FindMember c, wait QuorumAtRisk"},
		{"a promotion that pays for itself", 3, "a b:sick c:learner", nil, "in-flight: PromoteMember c"},
		{"a voter that has not started", 3, "a b c:unstarted", nil, "in-flight: wait WaitingForMember"},
		{"a voter that was never given a pod", 3, "a b c:unstarted,nopod", nil, "in-flight: RemoveMember c Lost"},
		{"a learner that was started with another list", 3, "a b c:learner,unstarted", edits(started("c", "a", "c")),
			"in-flight: RemoveMember c Misfit, DeletePod c"},
		{"the same, on a volume", 3, "a:claim b:claim c:learner,unstarted,claim", edits(started("c", "a", "c")),
			"in-flight: RemoveMember c Misfit, DeletePod c, DeleteClaim c"},
		{"a voter that was started with another list", 3, "a b c:unstarted", edits(started("c", "a", "c")),
			"in-flight: RemoveMember c Misfit, DeletePod c"},
		{"the list in another order is the same list", 3, "a b c:learner,unstarted", edits(started("c", "c", "b", "a")), "in-flight: wait WaitingForMember"},
		{"who has joined may have any list", 3, "a b c:learner", edits(started("c", "a", "c")), "in-flight: PromoteMember c"},
		{"one change at a time: a lost voter waits for the learner", 3, "a b:nopod c d:learner,unstarted", nil, "in-flight: RemoveMember d Unwanted, DeletePod d"},
		{"one change at a time: growing waits for the learner", 5, "a b c d:learner,unstarted", nil, "in-flight: wait WaitingForMember"},
	})
}

// started says with which peers the pod of a member was made.
func started(name string, peers ...string) func(*Observed) {
	return func(o *Observed) { o.pod(name).Peers = peers }
}

func TestRuleReplace(t *testing.T) {
	checkDecisions(t, []decision{
		{"a voter lost its pod and its data", 3, "a b c:nopod", nil, "replace: RemoveMember c Lost"},
		{"a voter's pod goes with its data: first it ends what clients have asked it for", 3, "a b c:terminating", nil, "replace: wait WaitingForPod"},
		{"then it is removed", 3, "a b c:terminating,sick", nil, "replace: RemoveMember c Lost"},
		{"but not while its container is stopping: it may hold writes", 3, "a b c:stopping,sick", nil, "replace: wait WaitingForPod"},
		{"as soon as the container has ended", 3, "a b c:stopping,down", nil, "replace: RemoveMember c Lost"},
		{"a leader whose pod is stopping hands over", 3, "a:stopping b c", nil, "replace: MoveLeader a>b"},
		{"at once if the quorum stands or falls with it", 2, "a b:terminating", nil, "replace: RemoveMember b Lost"},
		{"a voter was evicted", 3, "a b c:finished", nil, "replace: RemoveMember c Lost, DeletePod c"},
		{"a voter comes back to its volume", 3, "a:claim b:claim c:terminating,claim", nil, "replace: wait WaitingForPod"},
		{"the leader's pod goes: it hands over first", 3, "a:terminating b c", nil, "replace: MoveLeader a>b"},
		{"a leader that is gone cannot hand over", 3, "a:nopod b:leads c", nil, "replace: RemoveMember a Lost"},
		{"two of five, one after the other", 5, "a b c d:nopod e:nopod", nil, "replace: RemoveMember d Lost"},
		{"not if the rest would be no quorum", 5, "a b:sick c:sick d:nopod e", nil, "replace: FindMember d, wait QuorumAtRisk"},
		{"two that cannot be seen and that etcd hears", 3, "a b:nopod c:nopod", nil, "replace: FindMember b, FindMember c, wait QuorumAtRisk"},
		{"not the last one", 1, "a:terminating", nil, "replace: wait QuorumAtRisk"},
		{"a voter that only does not answer is left alone", 3, "a b c:sick", nil, "steady"},
		{"a voter that the controller cannot reach is left alone", 3, "a b c:unknown", nil, "steady"},
		{"a voter that does not start is left alone", 3, "a b c:down", nil, "steady"},
		{"a pod of somebody else's is no pod", 3, "a b c:theirs", nil, "replace: RemoveMember c Lost"},
	})
}

func TestRuleScaleDown(t *testing.T) {
	checkDecisions(t, []decision{
		{"the last one goes: first its clients", 3, "a b c d e", nil, "scale-down: LabelPod e leaving"},
		{"not while who is counted on follows another leader than the others", 2, "a:leads b c",
			edits(func(o *Observed) { o.Etcd.Members[1].Leader = o.Etcd.Members[2].ID }), "scale-down: wait QuorumAtRisk"},
		{"until the service does not lead to it", 3, "a b c d e:leaving,routed", nil, "scale-down: wait WaitingForService"},
		{"then its pod, which ends what it was asked for", 3, "a b c d e:leaving", nil, "scale-down: DismissPod e"},
		{"until it serves no more", 3, "a b c d e:leaving,terminating", nil, "scale-down: wait WaitingForPod"},
		{"and until its container has ended", 3, "a b c d e:leaving,stopping,sick", nil, "scale-down: wait WaitingForPod"},
		{"then the member", 3, "a b c d e:leaving,stopping,down", nil, "scale-down: RemoveMember e ScaleDown"},
		{"or after some time, if no kubelet says so", 3, "a b c d e:leaving,terminating,sick", nil, "scale-down: RemoveMember e ScaleDown"},
		{"and if its pod is gone already", 3, "a b c d e:nopod", nil, "scale-down: RemoveMember e ScaleDown"},
		{"whose pod goes by itself is the one", 3, "a b c:terminating d e:leaving", nil, "scale-down: LabelPod e voter, wait WaitingForPod"},
		{"who was chosen stays the one", 3, "a b:leaving c d e", nil, "scale-down: DismissPod b"},
		{"unless a sick one could go", 3, "a b:leaving c:sick d e", nil, "scale-down: LabelPod b voter, RemoveMember c ScaleDown, DeletePod c"},
		{"or one was evicted: without both there would be no quorum", 2, "a b:finished c:leaving", nil,
			"scale-down: LabelPod c voter, RemoveMember b ScaleDown, DeletePod b"},
		{"a leader that was chosen before it led stays", 1, "a:leads,leaving b", nil, "scale-down: LabelPod a voter, LabelPod b leaving"},
		{"who need not leave any more gets its clients back", 5, "a b c d e:leaving", nil, "steady: LabelPod e voter"},
		{"also while something else is waited for", 5, "a b c d e:leaving f:learner,unstarted", nil, "in-flight: LabelPod e voter, RemoveMember f Unwanted, DeletePod f"},
		{"a sick one that clients are led to is taken from the service, too", 3, "a b c d:unknown,routed", nil, "scale-down: LabelPod d leaving"},
		{"never the leader", 3, "a b c d:leaving e:leads", nil, "scale-down: DismissPod d"},
		{"a sick one first", 3, "a b:sick c d e", nil, "scale-down: RemoveMember b ScaleDown, DeletePod b"},
		{"a leader that only the controller cannot reach is still the leader", 3, "a:leads,unknown b c d", nil, "scale-down: LabelPod d leaving"},
		{"the volume goes too", 1, "a:claim b:claim,leaving", nil, "scale-down: RemoveMember b ScaleDown, DeletePod b, DeleteClaim b"},
		{"or is given up", 1, "a:claim b:claim,leaving", edits(retain), "scale-down: RemoveMember b ScaleDown, DeletePod b, ReleaseClaim b"},
		{"three to one, one of three sick", 1, "a b c:sick", nil, "scale-down: RemoveMember c ScaleDown, DeletePod c"},
		{"two to one: without its pod there would be no quorum", 1, "a b:leaving", nil, "scale-down: RemoveMember b ScaleDown, DeletePod b"},
		{"not if the rest would be no quorum", 3, "a:unknown b:sick c:sick d e:unknown", nil, "scale-down: wait QuorumAtRisk"},
		{"not while another one is about to restart", 1, "a b:podv=3.6.2 c", nil, "scale-down: wait WaitingForMember"},
		{"unless it is the one to go", 1, "a b c:podv=3.6.2", nil, "scale-down: LabelPod c leaving"},
		{"not while nobody knows who leads", 3, "a b c d", edits(disagree), "scale-down: wait NoLeader"},
	})
}

// disagree makes each half of the members follow another leader, as in the middle of
// an election.
func disagree(o *Observed) {
	for i := range o.Etcd.Members {
		o.Etcd.Members[i].Leader = uint64(1 + i%2)
	}
}

func TestRuleScaleUp(t *testing.T) {
	checkDecisions(t, []decision{
		{"a learner", 3, "a", nil, "scale-up: AddLearner c-new, AdmitPod c-new[a c-new]"},
		{"with a volume", 3, "a:claim b:claim", nil, "scale-up: AddLearner c-new, AdmitPod c-new[a b c-new]"},
		{"while a minority is sick", 5, "a b c:sick", nil, "scale-up: AddLearner c-new, AdmitPod c-new[a b c c-new]"},
		{"not to a cluster at its limit", 5, "a b c:sick d:sick", nil, "scale-up: wait QuorumAtRisk"},
		{"a voter where learners are unknown", 3, "a:v=3.3.9,podv=3.3.9 b:v=3.3.9,podv=3.3.9", edits(wants("3.3.9")),
			"scale-up: AddVoter c-new, AdmitPod c-new[a b c-new]"},
		{"the second voter needs its pod at once: without it there is no quorum to read from", 3, "a:v=3.3.9,podv=3.3.9", edits(wants("3.3.9")),
			"scale-up: AdmitPod c-new[a c-new], AddVoter c-new"},
		{"and its volume", 3, "a:v=3.3.9,podv=3.3.9,claim", edits(wants("3.3.9")),
			"scale-up: AdmitPod c-new[a c-new], AddVoter c-new"},
		{"a voter only to voters of which none is about to restart", 5, "a:v=3.3.9,podv=3.3.9 b:v=3.3.9,podv=3.3.10 c:v=3.3.9,podv=3.3.9", edits(wants("3.3.10")),
			"scale-up: wait QuorumAtRisk"},
		{"a learner next to members that know them, whatever is declared", 3, "a b", edits(wants("3.3.9"), unprepared),
			"scale-up: PreparePod c-new 3.6.11, wait WaitingForPod"},
		{"a voter while one old member is left", 5, "a b:v=3.3.9,podv=3.3.9 c", edits(wants("3.4.0")), "scale-up: AddVoter c-new, AdmitPod c-new[a b c c-new]"},
		{"a voter only to voters that all serve", 5, "a:v=3.3.9 b:v=3.3.9 c:sick", edits(wants("3.3.9")), "scale-up: wait QuorumAtRisk"},
		{"a new member takes the step that the others may take", 3, "a b", edits(wants("3.7.0")), "scale-up: AddLearner c-new, AdmitPod c-new[a b c-new]"},
		{"and not a step that they may not take yet", 3, "a:v=3.5.21,podv=3.5.21 b:v=3.5.21,podv=3.5.21", edits(wants("3.6.11"), unprepared),
			"scale-up: PreparePod c-new 3.5.21, wait WaitingForPod"},
		{"but not two", 3, "a b", edits(wants("3.8.0"), unprepared), "scale-up: PreparePod c-new 3.6.11, wait WaitingForPod"},
		{"and not one back", 3, "a b", edits(wants("3.5.9"), unprepared), "scale-up: PreparePod c-new 3.6.11, wait WaitingForPod"},
		{"one back while one of them is still there", 3, "a b:v=3.5.26,podv=3.5.26", edits(wants("3.5.26")), "scale-up: AddLearner c-new, AdmitPod c-new[a b c-new]"},
		{"but not when that one is about to restart", 3, "a b:v=3.5.26,podv=3.6.11", edits(wants("3.5.26"), unprepared),
			"scale-up: PreparePod c-new 3.6.11, wait WaitingForPod"},
		{"judged by the slowest, even if it does not answer", 4, "a b c:down,podv=3.5.0", edits(wants("3.7.0"), unprepared),
			"scale-up: PreparePod c-new 3.5.0, wait WaitingForPod"},
	})
}
